"""The end of a turn, as others are told of it: a sub-session's parent, whoever a root owes its outcome.

Quiet is a session in whose queue nothing waits for a turn and below which nobody owes a report. All of it is
rows, so that it is the same before and after a crash; call these inside the transaction that ends the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agents.turn import TurnOutcome
from sessions_app import queue, reply_to, reports
from sessions_app.models import Session
from sessions_app.reply_to import Report


def settle_turn(session_id: str, outcome: TurnOutcome, *, max_chars: int, now: datetime) -> Sequence[str]:
    """Tell what a turn came to, if the tree below is quiet; else an interim when another turn follows an answer.

    A turn that was interrupted softly came to nothing yet. Returns the sessions in whose queue something
    waits now.
    """
    if outcome.status == "interrupted":
        return ()
    row = Session.objects.select_for_update().get(pk=session_id)
    if queue.wants_turn(session_id):
        if outcome.status != "completed" or not outcome.text:
            return ()
        return _interim(row, Report(row, "still running", outcome.text, max_chars=max_chars), now=now)
    if reports.is_busy_below(session_id):
        return ()
    return settle_quiet(row, report_of(row, outcome, max_chars=max_chars), now=now)


def settle_quiet(row: Session, report: Report, *, now: datetime) -> Sequence[str]:
    """``row`` is locked and quiet."""
    return (reply_to if row.is_root else reports).settle(row, report, now=now)


def report_of(row: Session, outcome: TurnOutcome, *, max_chars: int) -> Report:
    if outcome.status == "completed":
        return Report(row, "completed", outcome.text or row.output, max_chars=max_chars)
    why = outcome.error or "its turn was cut short"
    return Report(row, "aborted", outcome.text, why.rstrip("."), max_chars=max_chars)


def _interim(row: Session, report: Report, *, now: datetime) -> Sequence[str]:
    if row.is_root:
        return reply_to.tell_interim(row, report, now=now)
    return reports.send(report, now=now) if row.report_due else ()
