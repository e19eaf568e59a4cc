"""A reviewer turns a draft down; the reason is shown to later drafters."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction

from evolution import permissions, transitions
from evolution.claim import RunSeen
from evolution.errors import Refused
from evolution.reduce import reduce_run
from evolution.words import check_length


def reject(*, run: RunSeen, user: User, reason: str, now: datetime) -> None:
    """Raises Refused ``forbidden``, ``reason_needed``, ``reason_too_long`` or ``changed``."""
    permissions.require(user, "review")
    if not reason.strip():
        raise Refused(
            "reason_needed", "Say why: the next draft reads it, so that it isn't proposed once more."
        )
    check_length(reason, "reason")
    transitions.reject(run=run, user=user, reason=reason.strip(), now=now)
    transaction.on_commit(lambda: reduce_run(run.run_id))
