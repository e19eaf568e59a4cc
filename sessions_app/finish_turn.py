"""The end of a turn or of a compaction: logs durable, then rows, queue and event in one transaction.

Each of these raises LeaseLostError when a successor has the session, and then nothing is marked.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from agents import history as wire
from agents.context_size import context_tokens as tokens_of
from agents.events import Usage
from agents.turn import TurnOutcome
from core import clock
from core.db.text import storable
from sessions_app import lease, queue, reply_to
from sessions_app.count_tokens import count_tokens
from sessions_app.create import announce
from sessions_app.models import Session, TokensOnDay
from sessions_app.opened_session import OpenSession, ends_answered, note
from sessions_app.settlement import settle_turn
from sessions_app.turn_compacted import turn_compacted

logger = logging.getLogger(__name__)


def finish_turn(
    opened: OpenSession, outcome: TurnOutcome, *, spent: Usage, context_tokens: int, now: datetime
) -> None:
    """A turn that ended softly leaves its messages pending: the follow-up turn answers them."""
    opened.log.end_turn()
    if outcome.status != "interrupted":
        _tell_compacted(opened, now)
    with transaction.atomic():
        _hold(opened)
        lease.confirm(opened.held)
        if outcome.status != "interrupted":
            queue.mark_worked(opened.pending, now=now)
        values: dict[str, object] = {**_spent(spent), "last_activity_at": now}
        if outcome.status == "completed":
            values |= _answered_with(outcome.text)
        if context_tokens:
            values["context_tokens"] = context_tokens
        Session.objects.filter(pk=opened.row.pk).update(**values)
        announce(opened.row, change="turn_ended", now=now)
        told = settle_turn(opened.row.pk, outcome, max_chars=opened.report_chars, now=now)
        _count(opened, spent, now)  # last: every turn of the workspace writes this row
    opened.to_wake += told
    if outcome.status != "interrupted":
        opened.pending = []


def finish_answered(opened: OpenSession) -> None:
    """Messages that an earlier process answered, but didn't mark any more before it died: the turn's end."""
    if not ends_answered(opened.history):
        return
    answered = [row.pk for row in queue.waiting(opened.row.pk) if row.stamp in opened.stamps]
    if not answered:
        return
    now = clock.now()
    outcome = TurnOutcome("completed", wire.message_text(opened.history[-1]))
    with transaction.atomic():
        _hold(opened)
        lease.confirm(opened.held)
        queue.mark_worked(answered, now=now)
        Session.objects.filter(pk=opened.row.pk).update(last_activity_at=now, **_answered_with(outcome.text))
        announce(opened.row, change="turn_ended", now=now)
        told = settle_turn(opened.row.pk, outcome, max_chars=opened.report_chars, now=now)
    opened.to_wake += told


def land_turn(opened: OpenSession, *, spent: Usage, now: datetime) -> None:
    """A turn that a shutdown cut off: what is there stays, its messages go on waiting for the successor."""
    note(opened, "The server was shut down during this turn; it goes on when the server is up again.")
    opened.log.end_turn()
    last = opened.history[-1] if opened.history else None
    values: dict[str, object] = {**_spent(spent), "last_activity_at": now}
    if last is not None and last["kind"] == "response" and wire.message_text(last):
        values["output"] = storable(wire.message_text(last))
    with transaction.atomic():
        lease.confirm(opened.held)
        _count(opened, spent, now)
        Session.objects.filter(pk=opened.row.pk).update(**values)
        announce(opened.row, change="turn_ended", now=now)


def finish_compaction(opened: OpenSession, *, spent: Usage, now: datetime) -> None:
    """One that was asked for: as the end of a turn, but nothing was answered."""
    opened.log.end_turn()
    values: dict[str, object] = {**_spent(spent), "last_activity_at": now}
    if opened.compacted:
        values["context_tokens"] = tokens_of(opened.history)
    _tell_compacted(opened, now)
    with transaction.atomic():
        lease.confirm(opened.held)
        _count(opened, spent, now)
        Session.objects.filter(pk=opened.row.pk).update(**values)
        announce(opened.row, change="compacted", now=now)


def _hold(opened: OpenSession) -> None:
    """The rows that the end of a root's turn writes to, in the order in which everybody locks them."""
    if opened.row.is_root:
        reply_to.hold(opened.row.pk)


def _spent(spent: Usage) -> dict[str, object]:
    return {"total_output_tokens": F("total_output_tokens") + spent.output_tokens}


def _count(opened: OpenSession, spent: Usage, now: datetime) -> None:
    count_tokens(workspace_id=opened.row.workspace_id, use=TokensOnDay.Use.CHAT, spent=spent, now=now)


def _answered_with(text: str) -> dict[str, Any]:
    """The row after an answer; one without a text leaves the last output as it is."""
    values: dict[str, Any] = {"exchange_count": F("exchange_count") + 1}
    return values | ({"output": storable(text)} if text else {})


def _tell_compacted(opened: OpenSession, now: datetime) -> None:
    """Once for each turn that compacted, whoever takes an interest or not."""
    if opened.compacted:
        opened.compacted = False
        _archive(opened)
        turn_compacted(opened.row, now=now)


def _archive(opened: OpenSession) -> None:
    """A ui log that is long now gets short; one that can't be archived stays long, and nothing is lost."""
    try:
        opened.log.archive()
    except OSError:
        logger.exception("Session %s: its earlier rows could not be archived", opened.row.pk)
