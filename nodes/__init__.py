"""Linked machines will live here: accounts, the hub and its tools; the client for the other machine."""
