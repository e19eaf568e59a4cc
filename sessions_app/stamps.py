"""Arrival stamps: UTC, milliseconds, unique in a session; they stand at the start of what the model reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from agents.events import Message
from core import clock

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\]")


def after(moment: datetime, steps: int) -> str:
    """The stamp ``steps`` milliseconds later: the way out of a collision."""
    return clock.stamp(moment + timedelta(milliseconds=steps))


def stamped(stamp: str, text: str, *, source: str = "") -> str:
    """What the model sees of one message."""
    return f"[{stamp}] (from: session {source}) {text}" if source else f"[{stamp}] {text}"


def of_text(text: str) -> str:
    """The stamp at the start of what the model sees of a message; empty when there is none."""
    found = _STAMP.match(text)
    if found is None:
        return ""
    try:
        return clock.stamp(datetime.fromisoformat(found.group(1)))
    except ValueError:
        return ""


def in_history(messages: Iterable[Message]) -> set[str]:
    """Every stamp that stands at the start of a user text."""
    return {
        found.group(1)
        for message in messages
        for part in message["parts"]
        if part.get("part_kind") == "user-prompt"
        for text in _texts(part.get("content"))
        if (found := _STAMP.match(text))
    }


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [item for item in content if isinstance(item, str)] if isinstance(content, list) else []
