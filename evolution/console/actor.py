"""Who decides at a terminal."""

from __future__ import annotations

from django.contrib.auth.models import User

from core.db import acting_user as terminal
from evolution.errors import Refused


def acting_user(name: str) -> User:
    """The user of ``--as``. Raises Refused ``inside_agent`` or ``no_user``."""
    try:
        return terminal.acting_user(name)
    except terminal.NoActor as error:
        raise Refused(error.code, str(error)) from error
