"""Which sessions this host has to work: what the look at the database finds, and the look before each turn."""

from __future__ import annotations

from core.processes import host_name
from sessions_app import ledger, queue
from sessions_app.lease import live_holder
from sessions_app.models import Session
from sessions_app.trees import root_of


def left_over() -> list[str]:
    """Roots of trees that a process left in the middle, then sessions that wait and whose tree nobody holds.

    Of those that wait, who waits longest is first.
    """
    waiting = queue.waiting_sessions(host=host_name())
    return [
        *ledger.leftover_roots(host=host_name()),
        *(name for name in waiting if live_holder(root_of(name)) is None),
    ]


def is_due(session_id: str) -> bool:
    """Whether there is something to work off, and this host has the workspace.

    What a dead process left is also taken away where nothing is worked any more: in rest the ledger is empty.
    """
    row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None or row.workspace.host != host_name():
        return False
    if ledger.entries(row.root_id).exists():
        return True
    return row.archived_at is None and queue.wants_turn(session_id)
