"""Stopping a session and all below it, as rows: after this nothing there starts a turn by itself.

Turns that run are aborted by the engine afterwards; what they leave is folded into their histories.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import transaction

from sessions_app import queue, reply_to, reports, trees
from sessions_app.create import announce
from sessions_app.models import QueuedMessage, Session
from sessions_app.reply_to import Report


def is_anything_to_stop(session_id: str) -> bool:
    """Whether something waits there, or owes somebody its outcome, as far as rows tell.

    What runs is known to the process that works it.
    """
    return bool(
        queue.waiting(session_id)
        or queue.waiting_in_tree(session_id)
        or reports.owing().filter(trees.within(session_id)).exists()
        or Session.objects.filter(pk=session_id, archived_at=None).exclude(reply_to=None).exists()
    )


def mark_stopped(
    session_id: str, *, by: str = "", why: str = "it was stopped", now: datetime
) -> Sequence[str]:
    """Stop the session and its subtree; who waits for its outcome is told once, unless ``by`` is that session.

    Messages that wait no longer ask for a turn: the next one takes them in. Returns sessions to wake. Where
    all of that is so already, nothing is written.
    """
    with transaction.atomic():
        tree = Session.objects.filter(trees.within(session_id), archived_at=None)
        reply_to.hold(trees.root_of(session_id), besides=tree.values_list("pk", flat=True))
        row = Session.objects.select_for_update().filter(pk=session_id).first()
        if row is None:
            return ()
        ids = list(
            Session.objects.filter(trees.within(session_id), archived_at=None).values_list("pk", flat=True)
        )
        was_due = row.report_due and row.stopped_at is None
        receiver_id = reports.receiver_of(row)
        if quieten(ids, now=now) or row.reply_to:
            announce(row, change="stopped", now=now)
        report = Report(row, "aborted", "", why)
        if row.is_root:
            return reply_to.settle(row, report, now=now)
        if not was_due or by == receiver_id:
            return ()
        return reports.send(report, now=now)


def quieten(session_ids: Collection[str], *, now: datetime) -> bool:
    """These sessions count as stopped: they owe nobody a report, and what waits starts no turn.

    False when all of that was so already.
    """
    rows = Session.objects.filter(pk__in=list(session_ids))
    waiting = QueuedMessage.objects.filter(session_id__in=list(session_ids), worked_at=None)
    changed = rows.filter(stopped_at=None).update(stopped_at=now)
    changed += rows.filter(report_due=True).update(report_due=False)
    changed += waiting.filter(starts_turn=True).update(starts_turn=False)
    return changed > 0
