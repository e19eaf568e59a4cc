"""The offline engine's own summary of a conversation: what was asked, and how each answer began. No insight."""

from __future__ import annotations

from collections.abc import Sequence

from agents.providers.offline import NAME
from agents.providers.offline.steps import Task
from agents.providers.offline.texts import sentences

HEADING = "# Summarise this conversation"
_LONGEST = 300
_MOST_LINES = 60


def summarise(earlier: Sequence[tuple[str, str]]) -> Task:
    """``earlier``: who spoke (``Person``, ``Agent``) and what they said, in order."""
    yield from ()
    lines = [f"- {speaker}: {_short(text)}" for speaker, text in earlier if text.strip()]
    left_out = len(lines) - _MOST_LINES
    if left_out > 0:
        lines = [*lines[:1], f"- ({left_out} further lines are left out)", *lines[left_out + 1 :]]
    return "\n".join([f"Notes of an {NAME}; it repeats, it doesn't understand.", *lines])


def _short(text: str) -> str:
    first = " ".join(sentences(text)[:2]) or " ".join(text.split())
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1].rstrip() + "…"
