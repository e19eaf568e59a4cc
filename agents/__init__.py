"""One turn of an agent: providers, loop, history, tools, access, shell. No Django."""
