"""A person stops a run, or an apply that hasn't begun to publish; its wrapper ends at its next look."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from evolution import permissions, ticker, transitions


def cancel_run(*, run_id: str, user: User, now: datetime) -> None:
    """Raises Refused ``forbidden`` or ``not_cancellable``."""
    permissions.require(user, "review")
    transitions.cancel_run(run_id=run_id, user=user, now=now)
    ticker.request_tick()


def cancel_apply(*, apply_id: str, user: User, now: datetime) -> None:
    """Raises Refused ``forbidden`` or ``not_cancellable``."""
    permissions.require(user, "review")
    transitions.cancel_apply(apply_id=apply_id, user=user, now=now)
    ticker.request_tick()
