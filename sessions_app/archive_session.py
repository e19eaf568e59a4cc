"""Archiving a session with all below it: nothing is sent to it any more, and what waits is cleared on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max

from sessions_app import requests, trees
from sessions_app.admin_log import note, with_those_below
from sessions_app.create import announce
from sessions_app.errors import SessionRefused
from sessions_app.models import QueuedMessage, Session
from sessions_app.stop_tree import mark_stopped


@dataclass(frozen=True, slots=True)
class WhatEnds:
    """``sessions``: those not archived yet, the topmost first. ``waiting``: messages that are cleared.

    ``newest`` is the highest number of a message that waits, 0 for none: one above it came in later.
    """

    sessions: list[Session]
    waiting: int
    newest: int


def what_ends(session_id: str) -> WhatEnds:
    """What archiving would end now."""
    rows = Session.objects.filter(trees.within(session_id), archived_at=None)
    found = sorted(rows, key=lambda row: row.pk.split(trees.SEPARATOR))
    messages = QueuedMessage.objects.filter(session__in=[row.pk for row in found], worked_at=None)
    newest = messages.aggregate(newest=Max("pk"))["newest"] or 0
    return WhatEnds(found, messages.count(), newest)


def archive_session(
    session_id: str, *, by: str = "", user: Any = None, seen: tuple[int, int] | None = None, now: datetime
) -> tuple[int, Sequence[str]]:
    """Returns how many sessions that were, and those to wake because they waited for an outcome.

    ``by``: the session that asks for it. ``user``: the person, for the admin's log. ``seen``: the number of
    sessions and the newest waiting message (``WhatEnds``) that the person was shown; raises SessionRefused
    ``changed`` when more would end by now, and then nothing was changed.

    Turns that run there in another process are aborted by it within a second; those of this one, by the caller.
    """
    with transaction.atomic():
        to_wake = mark_stopped(session_id, by=by, why="it was archived", now=now)
        ends = what_ends(session_id)
        ids = [row.pk for row in ends.sessions]
        if seen is not None and (len(ids) > seen[0] or ends.newest > seen[1]):
            raise SessionRefused(
                "Something came in since this page was opened. Look at what goes now, and say it again.",
                "changed",
            )
        QueuedMessage.objects.filter(session_id__in=ids, worked_at=None).update(worked_at=now)
        Session.objects.filter(pk__in=ids).update(archived_at=now)
        for row in ends.sessions:
            announce(row, change="archived", now=now)
        if ids:
            cleared = f"; {ends.waiting} waiting messages were cleared" if ends.waiting else ""
            note(ends.sessions[0], f"Archived{with_those_below(len(ids))}{cleared}.", user=user, now=now)
    requests.ask(session_id, Session.Asked.STOP)
    return len(ids), [name for name in to_wake if name not in ids]
