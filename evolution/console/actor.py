"""Who decides at a terminal."""

from __future__ import annotations

import os

from django.contrib.auth.models import User

from evolution.errors import Refused


def acting_user(name: str) -> User:
    """The user of ``--as``. Raises Refused ``inside_agent`` or ``no_user``.

    Refusing inside an agent's shell is a safety catch, no boundary: whoever has a full shell has the database.
    """
    if os.environ.get("HALO_SESSION"):
        raise Refused(
            "inside_agent", "Decisions are a person's; this shell belongs to an agent (HALO_SESSION is set)."
        )
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise Refused(
            "no_user", f"There is no active user {name!r}. Users: halo createsuperuser, or the admin's pages."
        )
    return user
