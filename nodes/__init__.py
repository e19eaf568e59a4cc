"""Linked machines will live here: accounts, the hub and its tools; the client that runs on the other machine."""
