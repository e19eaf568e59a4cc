"""Which sessions a server works on now: one row each, made under the lease and gone when the work ends.

What a process leaves here when it dies is how its successor knows whom to tell (``sessions_app.restart``).
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from core.db.models import process_values
from core.processes import ProcessIdentity
from sessions_app import trees
from sessions_app.lease import Lease, live_holder
from sessions_app.models import RunningSession


def enter(session_id: str, *, held: Lease, now: datetime) -> None:
    """Only the holder of the tree's lease calls this, after ``restart.settle``: no leftover is overwritten."""
    RunningSession.objects.update_or_create(
        session_id=session_id,
        defaults={"epoch": held.epoch, "started_at": now, **process_values(held.owner)},
    )


def leave(session_id: str, *, held: Lease) -> None:
    """The row of a successor stays."""
    mine = process_values(held.owner)
    RunningSession.objects.filter(session_id=session_id, **mine).delete()


def entries(root_id: str) -> QuerySet[RunningSession]:
    """The rows of a root and all below it."""
    return RunningSession.objects.filter(trees.within(root_id, of="session__id"))


def leftover_roots(*, host: str) -> list[str]:
    """Roots of this host's workspaces with rows of processes that don't hold the tree (any more)."""
    rows = RunningSession.objects.select_related("session").filter(session__workspace__host=host)
    holders: dict[str, ProcessIdentity | None] = {}
    found = set()
    for row in rows:
        root = row.session.root_id
        if root not in holders:
            holders[root] = live_holder(root)
        if holders[root] is None or holders[root] != row.process:
            found.add(root)
    return sorted(found)
