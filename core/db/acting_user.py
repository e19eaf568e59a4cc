"""Who decides at a terminal: the user named with ``--as``."""

from __future__ import annotations

import os

from django.contrib.auth.models import User


class NoActor(Exception):
    """``code`` is stable; the text says what happened and what to do."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def acting_user(name: str) -> User:
    """Raises NoActor ``inside_agent`` or ``no_user``. What the user may do, the caller asks.

    Refusing inside an agent's shell is a safety catch, no boundary: whoever has a full shell has the database.
    """
    if os.environ.get("HALO_SESSION"):
        raise NoActor(
            "inside_agent", "Decisions are a person's; this shell belongs to an agent (HALO_SESSION is set)."
        )
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise NoActor(
            "no_user", f"There is no active user {name!r}. Users: halo createsuperuser, or the admin's pages."
        )
    return user
