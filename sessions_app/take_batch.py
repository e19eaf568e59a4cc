"""What waits in a session's queue goes into its history: for a turn, or unanswered after a stop."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from agents import history as wire
from agents.events import Message
from sessions_app import lease, queue, stamps
from sessions_app.create import announce
from sessions_app.logs import records as make
from sessions_app.models import QueuedMessage, Session
from sessions_app.opened_session import OpenSession
from sessions_app.titles import title_of


def take_batch(opened: OpenSession) -> bool:
    """Put everything that waits into the history, durably; True when a turn is due for it.

    Nothing is taken unless some message asks for a turn.
    """
    rows = queue.waiting(opened.row.pk)
    if not any(row.starts_turn for row in rows):
        return False
    _take(opened, rows)
    return True


def fold_unanswered(opened: OpenSession, *, now: datetime) -> int:
    """After a stop (``stop_tree.mark_stopped``): what waited goes into the history without a turn.

    What came in after the stop goes on waiting for its turn. Returns how many messages were folded.
    """
    _take(opened, [row for row in queue.waiting(opened.row.pk) if not row.starts_turn])
    count = len(opened.pending)
    opened.log.end_turn()
    with transaction.atomic():
        lease.confirm(opened.held)
        queue.mark_worked(opened.pending, now=now)
        Session.objects.filter(pk=opened.row.pk).update(last_activity_at=now)
        announce(opened.row, change="stopped", now=now)
    opened.pending = []
    return count


def _take(opened: OpenSession, rows: Sequence[QueuedMessage]) -> None:
    """A message whose stamp stands in the history already isn't put there again."""
    fresh = [row for row in rows if row.stamp not in opened.stamps]
    if fresh:
        _append(opened, fresh)
    opened.pending = [row.pk for row in rows]


def _append(opened: OpenSession, fresh: Sequence[QueuedMessage]) -> None:
    """One message of the history for the whole batch, one ui row for each."""
    parts, shown, ids = [], [], []
    for row in fresh:
        text = stamps.stamped(row.stamp, row.text, source=row.source_session)
        images = [(image["media_type"], base64.urlsafe_b64decode(image["data"])) for image in row.images]
        parts += wire.user_message(text, images)["parts"]
        ids.append(make.new_row_id())
        shown.append(
            make.user_row(
                row_id=ids[-1],
                at=row.stamp,
                stamp=row.stamp,
                text=row.text,
                images=row.images,
                source=row.source_session,
            )
        )
    message: Message = {"kind": "request", "parts": parts}
    opened.log.append(raw=[make.message(message, ids)], ui=[make.add(row) for row in shown], sync=True)
    opened.history.append(message)
    opened.rows.append(tuple(ids))
    opened.stamps.update(row.stamp for row in fresh)
    title = title_of(fresh[0].text)
    if title:
        Session.objects.filter(pk=opened.row.pk, title="").update(title=title)
