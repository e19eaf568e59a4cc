"""What the three internal agents are told, one module a brief."""
