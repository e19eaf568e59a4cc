"""The outcome a root session owes to someone: ``reply_to``, and who brings it there.

``{"relay": {"workspace": 3, "session": "abc"}}`` or ``{"cron": "run"}``: the key names the deliverer. Deliverers
are registered by whoever writes such debts, the upper floors in their ``AppConfig.ready``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from django.db import transaction

from sessions_app.errors import SessionRefused
from sessions_app.models import Session

ReportStatus = Literal["completed", "aborted", "still running", "superseded"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of it. ``text`` is whole, to be cut at ``max_chars``; ``error`` says why it was aborted."""

    session: Session
    status: ReportStatus
    text: str
    error: str = ""
    max_chars: int = 8192


class Deliverer(Protocol):
    """Brings reports to where they are owed, by rows alone: it runs in the transaction that settles the debt."""

    interims: bool
    """Whether it wants to hear of answers that another turn follows."""

    def deliver(self, owed: Any, report: Report, *, now: datetime) -> Sequence[str]:
        """``owed`` is the debt's value. Returns sessions in whose queue something waits now.

        What can't be delivered any more (its receiver is gone) is let go, with a warning in the log.
        """


_deliverers: dict[str, Deliverer] = {}


def register(kind: str, deliverer: Deliverer) -> None:
    _deliverers[kind] = deliverer


def hold(root_id: str, *, besides: Collection[str] = ()) -> None:
    """Lock a root, those ``besides``, and the session the root owes its outcome to, in the order of their ids.

    First in every transaction that may settle the debt: two roots that owe each other and end at one instant
    would else each hold its own row and wait for the other's.
    """
    while True:
        receiver = _receiver(root_id)
        with transaction.atomic():
            wanted = {root_id, *besides, *receiver}
            list(Session.objects.select_for_update(of=("self",)).filter(pk__in=wanted).order_by("pk"))
            if set(_receiver(root_id)) <= wanted:
                return
            transaction.set_rollback(True)  # the debt changed meanwhile: let go, and lock in order again


def _receiver(root_id: str) -> list[str]:
    """The session that is told, for debts to sessions; other deliverers lock no session."""
    debt = Session.objects.filter(pk=root_id).values_list("reply_to", flat=True).first() or {}
    return [str(owed["session"]) for owed in debt.values() if isinstance(owed, dict) and "session" in owed]


def take_over(session: Session, debt: dict[str, Any], *, now: datetime) -> Sequence[str]:
    """Owe the outcome of this root to somebody else from now on; an earlier, other debt is closed as superseded.

    Call it in the transaction that queues the message the outcome is about. Returns sessions to wake. Raises
    SessionRefused when this process can't close the earlier debt.
    """
    hold(session.pk)
    row = Session.objects.get(pk=session.pk)
    earlier = row.reply_to
    if earlier == debt:
        return ()
    if earlier and not _known(earlier):
        raise SessionRefused(
            f"Session {row.pk} owes its outcome to {earlier}, which this process can't tell.", "owes_another"
        )
    Session.objects.filter(pk=row.pk).update(reply_to=debt)
    return _deliver(earlier, Report(row, "superseded", ""), now=now) if earlier else ()


def settle(row: Session, report: Report, *, now: datetime) -> Sequence[str]:
    """Clear the debt and queue its delivery, in the caller's transaction; ``row`` is locked.

    A debt whose deliverer this process doesn't know is kept. Returns sessions to wake.
    """
    debt = row.reply_to
    if not debt:
        return ()
    if not _known(debt):
        logger.error("Session %s owes a report to %s, which this process can't deliver.", row.pk, debt)
        return ()
    Session.objects.filter(pk=row.pk).update(reply_to=None)
    return _deliver(debt, report, now=now)


def tell_interim(row: Session, report: Report, *, now: datetime) -> Sequence[str]:
    """An answer that another turn follows; the debt stays."""
    debt = row.reply_to
    if not debt or not _known(debt):
        return ()
    (kind,) = debt
    return _deliver(debt, report, now=now) if _deliverers[kind].interims else ()


def _known(debt: dict[str, Any]) -> bool:
    return len(debt) == 1 and next(iter(debt)) in _deliverers


def _deliver(debt: dict[str, Any], report: Report, *, now: datetime) -> Sequence[str]:
    ((kind, owed),) = debt.items()
    return _deliverers[kind].deliver(owed, report, now=now)
