"""What a process left in the middle when it died is told to the roots it worked for: once, in their queue.

Called under the lease of the tree, so by one successor only. A root is nudged with one message: its own turn
was cut off, or sessions below it were while it was idle, or both.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence, Set
from datetime import datetime

from django.db import transaction

from core import clock
from core.paths import HaloHome
from sessions_app import queue, reports, trees
from sessions_app.agent_choice import choose_agent
from sessions_app.create import announce
from sessions_app.errors import SessionRefused
from sessions_app.lease import Lease
from sessions_app.ledger import entries
from sessions_app.logs.raw_view import read_raw_view
from sessions_app.models import QueuedMessage, RunningSession, Session
from sessions_app.opened_session import ends_answered
from sessions_app.places import raw_log
from sessions_app.stop_tree import quieten

LISTED = 10


def settle(held: Lease, *, home: HaloHome, now: datetime) -> bool:
    """Read and delete what earlier holders left in the ledger, and queue the nudge, in one transaction.

    Cut-off sub-sessions count as stopped. Archived sessions and internal agents are told nothing. True when
    there was something. Raises OSError when a log can't be read, or the workspace isn't there; then the rows stay.
    """
    # Whoever holds the tree has entered nothing yet: every row of it is a leftover.
    if not entries(held.root_id).exists():
        return False
    root = Session.objects.select_related("workspace").get(pk=held.root_id)
    if not root.workspace.paths.halo.is_dir():  # its logs aren't empty: they can't be read now
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root.workspace.paths.halo))
    in_the_middle = _in_the_middle(held.root_id)
    is_internal = _is_internal(root, home)
    with transaction.atomic():
        Session.objects.select_for_update().get(pk=held.root_id)  # ahead of those below it, as everywhere
        rows = list(entries(held.root_id).select_for_update().order_by("session_id"))
        if not rows:
            return False
        RunningSession.objects.filter(pk__in=[row.pk for row in rows]).delete()
        cut_off = {row.session_id for row in rows} & in_the_middle
        below = _with_those_who_waited(cut_off - {root.pk})
        quieten(below, now=now)
        root.refresh_from_db(fields=["archived_at", "stopped_at"])
        own = root.pk in cut_off and root.stopped_at is None  # what a person stopped doesn't go on
        if (own or below) and root.archived_at is None and not is_internal:
            epoch = max(row.epoch for row in rows)
            queue.accept(
                session=root,
                text=nudge(own=own, below=below, now=now),
                sender=QueuedMessage.Sender.SYSTEM,
                client_id=f"restart-{epoch}",
                now=now,
            )
        announce(root, change="cut_off", now=now)
    return True


def _in_the_middle(root_id: str) -> set[str]:
    """Those of the tree in the ledger whose turn hasn't ended; of one that has, the end is only to be marked."""
    rows = Session.objects.select_related("workspace").filter(pk__in=entries(root_id).values("session_id"))
    histories = {row.pk: read_raw_view(raw_log(row)).messages for row in rows}
    return {
        name
        for name, history in histories.items()
        if not ends_answered(history) and (history or name != root_id)
    }


def _with_those_who_waited(cut_off: Set[str]) -> list[str]:
    """Besides, those above them that waited for their reports: none will come."""
    lines = {name for session_id in cut_off for name in trees.line_of(session_id)[1:-1]}
    waited = reports.owing().filter(pk__in=lines).values_list("pk", flat=True)
    return sorted({*cut_off, *waited})


def nudge(*, own: bool, below: Sequence[str], now: datetime) -> str:
    """``below``: the sub-sessions that were cut off; at most ten are named, then counted."""
    head = f"[System] The server was restarted ({clock.stamp(now)})"
    named = ", ".join(below[:LISTED])
    if len(below) > LISTED:
        named += f" and {len(below) - LISTED} more"
    if not own:
        return (
            f"{head}. You were idle, but these of your sub-sessions were cut off and are stopped now: {named}. "
            "If you were waiting for their reports, give them their task again; otherwise nothing is to be done."
        )
    text = (
        f"{head} in the middle of your own turn. Your history is intact up to the last finished tool call; the "
        "call that was in flight may or may not have had its effect, and a command that was running may still "
        "run: check before you repeat it. Go on from there; do not start over."
    )
    if below:
        text += f" These of your sub-sessions were cut off too and are stopped now: {named}."
    return text


def _is_internal(root: Session, home: HaloHome) -> bool:
    try:
        return choose_agent(root.workspace, root.agent_id, home=home).internal
    except SessionRefused:
        return False  # its prompts can't be read now; the turn will say so
