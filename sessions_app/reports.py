"""What a sub-session tells its parent: one message in the parent's queue when it is quiet.

``report_due`` is the debt. Accepting a message that starts a turn makes it (``queue.accept``), the report
clears it in the transaction that queues the message, so no crash loses or repeats one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from sessions_app import queue, trees
from sessions_app.models import QueuedMessage, Session
from sessions_app.reply_to import Report

SIBLINGS_NAMED = 10


def owing() -> QuerySet[Session]:
    """Sub-sessions at work or about to be: their outcome hasn't been told yet."""
    return Session.objects.filter(report_due=True, stopped_at=None, archived_at=None)


def is_busy_below(session_id: str) -> bool:
    return owing().filter(trees.below(session_id)).exists()


def settle(row: Session, report: Report, *, now: datetime) -> Sequence[str]:
    """Clear the debt and queue the report, in the caller's transaction. Returns the parent to wake, if any."""
    if not Session.objects.filter(pk=row.pk, report_due=True).update(report_due=False):
        return ()
    return send(report, now=now)


def send(report: Report, *, now: datetime) -> Sequence[str]:
    receiver_id = receiver_of(report.session)
    return post(receiver_id, text_of(report, receiver_id), source_id=report.session.pk, now=now)


def receiver_of(session: Session) -> str:
    """The parent; while that one is stopped, the nearest above it that isn't.

    A stop takes all below along, so such a session was asked again since: by somebody above, who waits for the
    answer, or by a person, and then those above count it as running. The parent would tell neither.
    """
    above = trees.line_of(session.pk)[:-1]
    living = Session.objects.filter(pk__in=above, stopped_at=None, archived_at=None)
    return max(living.values_list("pk", flat=True), key=len, default=session.parent_id or "")


def post(receiver_id: str, text: str, *, source_id: str, now: datetime) -> Sequence[str]:
    """Queue a report for a session, beyond every limit. Returns the receiver when it is to be woken.

    One that was stopped reads it with its next turn; one that is archived or gone is told nothing.
    """
    receiver = Session.objects.select_for_update().filter(pk=receiver_id, archived_at=None).first()
    if receiver is None:
        return ()
    wakes = receiver.stopped_at is None
    queue.accept(
        session=receiver,
        text=text,
        sender=QueuedMessage.Sender.SYSTEM,
        source_session=source_id,
        starts_turn=wakes,
        now=now,
    )
    return (receiver.pk,) if wakes else ()


def text_of(report: Report, receiver_id: str) -> str:
    session = report.session
    head = f"Report of sub-session {session.pk} ({session.agent_id}), status {report.status}"
    whole = f'get_session_output(session_id="{session.pk}", offset={report.max_chars})'
    return f"{body(head, report, whole=whole)}\n\n{_others(session, receiver_id)}"


def body(head: str, report: Report, *, whole: str) -> str:
    """``head``, why it was aborted, and the text; one that is too long ends with the call that reads on."""
    text = report.text
    if len(text) > report.max_chars:
        rest = len(text) - report.max_chars
        text = f"{text[: report.max_chars]}\n[{rest:,} more characters; to read on: {whole}]"
    first = f"{head}: {report.error}." if report.error else f"{head}."
    return f"{first}\n\n{text or '(It left no text.)'}"


def _others(session: Session, receiver_id: str) -> str:
    running = owing().filter(parent_id=receiver_id).exclude(pk=session.pk).order_by("created_at", "pk")
    named = [f"{row.pk} ({row.agent_id})" for row in running[: SIBLINGS_NAMED + 1]]
    if not named:
        return "None of your other sub-sessions is running."
    if len(named) > SIBLINGS_NAMED:
        named[SIBLINGS_NAMED:] = [f"and {running.count() - SIBLINGS_NAMED} more"]
    return f"Still running: {', '.join(named)}."
