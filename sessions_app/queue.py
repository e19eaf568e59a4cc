"""The durable queue: accepting a message once, and knowing which ones still wait.

A message is worked off when a turn that holds it has ended, or when a stop folded it into the history. Its
stamp in the raw log says that it stands in the history already, so that a crash in between neither loses nor
repeats it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from core.db.text import storable
from sessions_app import stamps, trees
from sessions_app.errors import QueueFull, SessionRefused
from sessions_app.models import QueuedMessage, Session
from sessions_app.outside_data import carry

ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Accepted:
    """``created`` is False when this client id had been accepted before; the first text counts."""

    message_id: int
    stamp: str
    created: bool


def accept(
    *,
    session: Session,
    text: str,
    sender: str = QueuedMessage.Sender.PERSON,
    images: Sequence[dict[str, Any]] = (),
    client_id: str = "",
    source_session: str = "",
    starts_turn: bool = True,
    max_waiting: int = 256,
    now: datetime,
) -> Accepted:
    """Store a message durably; when this returns it may be acknowledged.

    Raises SessionRefused for an archived session or an empty message, QueueFull for an agent's message beyond
    ``max_waiting`` (a person's are always taken).
    """
    if not text.strip() and not images:
        raise SessionRefused("The message is empty.", "empty_message")
    text, client_id = storable(text), storable(client_id)
    for _ in range(ATTEMPTS):
        try:
            with transaction.atomic():
                known = _known(session, client_id)
                if known is not None:
                    return known
                _revive(session, starts_turn=starts_turn)
                _check(session, sender, max_waiting)
                if source_session:
                    carry(source_id=source_session, target_id=session.pk, now=now)
                row = QueuedMessage.objects.create(
                    session=session,
                    sender=sender,
                    text=text,
                    images=list(images),
                    source_session=source_session,
                    client_id=client_id,
                    stamp=_free_stamp(session, now),
                    starts_turn=starts_turn,
                    created_at=now,
                )
            return Accepted(row.pk, row.stamp, created=True)
        except IntegrityError:
            # The same client id from two processes at once: the other one's row is found next.
            continue
    raise SessionRefused("Too many messages arrived in one moment; send it again.", "busy")


def waiting(session_id: str) -> list[QueuedMessage]:
    """Accepted and not yet worked off, in the order of their arrival."""
    return list(QueuedMessage.objects.filter(session_id=session_id, worked_at=None).order_by("id"))


def wants_turn(session_id: str, *, beside: Collection[int] = ()) -> bool:
    """Whether a message waits that starts a turn, other than the ones being worked."""
    rows = QueuedMessage.objects.filter(session_id=session_id, worked_at=None, starts_turn=True)
    return rows.exclude(pk__in=list(beside)).exists()


def waiting_in_tree(root_id: str) -> dict[str, set[int]]:
    """The messages that start a turn and aren't worked off, by session, of a root and all below it."""
    rows = QueuedMessage.objects.filter(worked_at=None, starts_turn=True)
    rows = rows.filter(trees.within(root_id, of="session__id"))
    found: dict[str, set[int]] = {}
    for session_id, message_id in rows.values_list("session_id", "pk"):
        found.setdefault(session_id, set()).add(message_id)
    return found


def waiting_sessions(*, host: str) -> list[str]:
    """Sessions of this host's workspaces in whose queue a message waits that starts a turn, the longest first."""
    rows = QueuedMessage.objects.filter(worked_at=None, starts_turn=True, session__archived_at=None)
    rows = rows.filter(session__workspace__host=host).order_by("pk")
    return list(dict.fromkeys(rows.values_list("session_id", flat=True)))


def mark_worked(message_ids: Collection[int], *, now: datetime) -> int:
    """Answered, or folded by a stop. The rows stay, so that a resend is recognised."""
    return QueuedMessage.objects.filter(pk__in=list(message_ids), worked_at=None).update(worked_at=now)


def _known(session: Session, client_id: str) -> Accepted | None:
    if not client_id:
        return None
    row = QueuedMessage.objects.filter(session=session, client_id=client_id).first()
    return None if row is None else Accepted(row.pk, row.stamp, created=False)


def _revive(session: Session, *, starts_turn: bool) -> None:
    """A message that starts a turn ends a stop, and a sub-session owes its parent the outcome.

    Ahead of everything else: it holds the row, so that a turn that ends now either sees the message waiting
    or has told its outcome before the new debt is made.
    """
    values: dict[str, object] = {"last_activity_at": F("last_activity_at")}
    if starts_turn:
        values["stopped_at"] = None
        if not session.is_root:
            values["report_due"] = True
    Session.objects.filter(pk=session.pk).update(**values)


def _free_stamp(session: Session, now: datetime) -> str:
    """That of ``now``, or of the first millisecond behind it that no message of the session has; one query.

    The session's row is held (``_revive``), so that nobody takes it meanwhile. Stamps are texts in the order of
    time: where the taken ones stop following each other, one is free.
    """
    taken = QueuedMessage.objects.filter(session=session, stamp__gte=stamps.after(now, 0)).order_by("stamp")
    step = 0
    for stamp in taken.values_list("stamp", flat=True).iterator(chunk_size=500):
        if stamp != stamps.after(now, step):
            break
        step += 1
    return stamps.after(now, step)


def _check(session: Session, sender: str, max_waiting: int) -> None:
    archived_at = Session.objects.filter(pk=session.pk).values_list("archived_at", flat=True).first()
    if archived_at is not None:
        raise SessionRefused(f"Session {session.pk} is archived; start a new one.", "archived")
    if sender == QueuedMessage.Sender.AGENT:
        count = QueuedMessage.objects.filter(session=session, worked_at=None).count()
        if count >= max_waiting:
            raise QueueFull(count)
