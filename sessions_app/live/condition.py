"""What the database says of a session that is looked at: whether it works, what waits, what it used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.frames import ChatComplete, ChatUsage, ChatWaiting, ChatWorking, WaitingMessage
from sessions_app import queue
from sessions_app.at_work import is_working
from sessions_app.models import Session

SHOWN_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Condition:
    """``waiting``: messages that are stored and stand in no row yet."""

    working: bool = False
    waiting: tuple[WaitingMessage, ...] = ()
    context_tokens: int = 0
    output_tokens: int = 0


def read_condition(session_id: str, *, shown: Collection[str]) -> Condition:
    """``shown``: the stamps that stand in rows. A session that is gone is at rest."""
    row = Session.objects.filter(pk=session_id).first()
    if row is None:
        return Condition()
    waiting = tuple(
        WaitingMessage(stamp=message.stamp, text=message.text[:SHOWN_CHARS], source=message.source_session)
        for message in queue.waiting(session_id)
        if message.stamp not in shown
    )
    return Condition(is_working(row), waiting, row.context_tokens, row.total_output_tokens)


def changes(session_id: str, before: Condition | None, now: Condition) -> list[str]:
    """The frames that bring a view from ``before`` (None: it knows nothing) to ``now``."""
    frames: list[ChatWorking | ChatComplete | ChatWaiting | ChatUsage] = []
    if before is None or before.waiting != now.waiting:
        frames.append(ChatWaiting(session=session_id, messages=list(now.waiting)))
    used = (now.context_tokens, now.output_tokens)
    if before is None or (before.context_tokens, before.output_tokens) != used:
        frames.append(ChatUsage(session=session_id, context_tokens=used[0], output_tokens=used[1]))
    if before is not None and before.working != now.working:
        kind = ChatWorking if now.working else ChatComplete
        frames.append(kind(session=session_id))
    return [frame.to_text() for frame in frames]
