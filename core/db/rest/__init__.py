"""What every room's REST endpoints share: who calls, how errors look, how lists page.

Only the web process imports this; commands and wrappers never load the REST library.
"""
