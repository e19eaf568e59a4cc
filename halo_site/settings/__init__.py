"""``slim`` for commands and wrappers (no admin, no web), ``web`` on top of it, ``test`` for the suite."""
