"""The conversation as evolution freezes it: fast, and without the model library."""

from __future__ import annotations

from agents.events import Message
from agents.repair import repair
from sessions_app.logs.raw_view import read_raw_view
from sessions_app.models import Session
from sessions_app.places import raw_log


def frozen_history(session: Session) -> list[Message]:
    """The messages up to the last save point, open calls closed by repair. Writes nothing.

    An absent log is an empty conversation. Raises OSError when the log can't be read.
    """
    return repair(read_raw_view(raw_log(session)).messages)
