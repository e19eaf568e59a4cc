"""A session while this process works it, as its logs and its lease say it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents import history as wire
from agents.events import Message
from core import clock
from sessions_app.lease import Lease
from sessions_app.logs import SessionLog
from sessions_app.logs import records as make
from sessions_app.models import Session


@dataclass(slots=True)
class OpenSession:
    """``history`` and ``rows`` (which ui rows show each message) agree with the raw log at every moment.

    ``stamps``: of every message that stands in the logs. ``pending``: ids of queued messages that stand in the
    history and whose turn hasn't ended. ``compacted``: a turn that hasn't ended has shortened the history.
    ``report_chars``: where a report of this session is cut. ``to_wake``: sessions that were told something.
    """

    row: Session
    held: Lease
    log: SessionLog
    history: list[Message]
    rows: list[Sequence[str]]
    stamps: set[str]
    pending: list[int] = field(default_factory=list)
    compacted: bool = False
    report_chars: int = 8192
    to_wake: list[str] = field(default_factory=list)


def note(opened: OpenSession, text: str, *, kind: str = "note") -> None:
    """A system row in what a person sees; the model doesn't."""
    row = make.system_row(row_id=make.new_row_id(), at=clock.stamp(clock.now()), kind=kind, text=text)
    opened.log.append(ui=[make.add(row)])


def ends_answered(history: Sequence[Message]) -> bool:
    """Whether the last message is a reply that ended its turn, not one that a shutdown cut off."""
    if not history or history[-1]["kind"] != "response" or wire.tool_calls(history[-1]):
        return False
    return not wire.message_text(history[-1]).endswith(wire.PARTIAL_SHUTDOWN)
