"""The tools of an agent, by name; which a session is offered is decided by its level (registry.py)."""
