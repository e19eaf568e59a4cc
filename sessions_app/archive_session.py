"""Archiving a session with all below it: nothing is sent to it any more, and what waits is cleared on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from sessions_app import requests, trees
from sessions_app.create import announce
from sessions_app.models import QueuedMessage, Session
from sessions_app.stop_tree import mark_stopped


def archive_session(session_id: str, *, by: str = "", now: datetime) -> tuple[int, Sequence[str]]:
    """Returns how many sessions that were, and those to wake because they waited for an outcome.

    Turns that run there in another process are aborted by it within a second; those of this one, by the caller.
    """
    with transaction.atomic():
        to_wake = mark_stopped(session_id, by=by, why="it was archived", now=now)
        ids = list(
            Session.objects.filter(trees.within(session_id), archived_at=None).values_list("pk", flat=True)
        )
        QueuedMessage.objects.filter(session_id__in=ids, worked_at=None).update(worked_at=now)
        Session.objects.filter(pk__in=ids).update(archived_at=now)
        for row in Session.objects.filter(pk__in=ids):
            announce(row, change="archived", now=now)
    requests.ask(session_id, Session.Asked.STOP)
    return len(ids), [name for name in to_wake if name not in ids]
