"""A person has looked at an apply that no machine could finish, and sends it on in its direction."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from evolution import permissions, ticker, transitions


def try_again(*, apply_id: str, user: User, now: datetime) -> None:
    """Raises Refused ``forbidden`` or ``not_waiting``."""
    permissions.require(user, "review")
    transitions.try_again(apply_id=apply_id, user=user, now=now)
    ticker.request_tick()
