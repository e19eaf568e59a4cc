"""What of a history goes and what stays when it is made shorter. Asking for the summary is in ``summary``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents import history as wire
from agents.context_size import estimate
from agents.events import Message

Outcome = Literal["nothing_to_compact", "compacted", "nothing_produced", "failed", "stopped"]

CLEARED = "[result cleared to make room; call the tool again if it is needed]"
NOTE = "[The earlier part of this conversation was left out to make room: {count} messages.]"
HEAD = "[Summary of the earlier part of this conversation, {count} messages. They are no longer here.]\n\n"
WORKED_ON = "\n\n[What follows is the newest message of that part, word for word.]"


@dataclass(frozen=True, slots=True)
class Cut:
    """A history in two: ``head`` becomes a summary, ``tail`` stays word for word.

    ``opening``: the parts of the newest message of a person, when the head holds it: it may still be worked on.
    """

    head: list[Message]
    tail: list[Message]
    opening: list[wire.Part]

    @property
    def gain(self) -> int:
        """The tokens of the head that aren't a summary yet; an estimate."""
        return sum(estimate([message]) for message in self.head if not wire.is_summary(message))

    def joined(self, summary: str) -> list[Message]:
        """The shorter history: of the tail's tool results all but the newest are cleared."""
        tail = _cleared(self.tail) or self.tail
        text = HEAD.format(count=len(self.head)) + summary + (WORKED_ON if self.opening else "")
        return [
            wire.summary_message(text, of=len(self.head), kept=len(tail), also=self.opening),
            *tail,
        ]


def cut(history: Sequence[Message], *, keep: int) -> Cut | None:
    """None when there is nothing to compact. At least a message that waits for its answer stays in the tail.

    ``history`` is repaired: a result stands right behind its call.
    """
    start = max(len(history) - keep, 0)
    if start == len(history) and history and history[-1]["kind"] == "request":
        start -= 1
    while start > 0 and any(map(wire.is_tool_result, _parts(history, start))):
        start -= 1
    head, tail = list(history[:start]), list(history[start:])
    opening: list[wire.Part] = []
    if not any(wire.persons_parts(message) for message in tail):
        opening = next((parts for m in reversed(head) if (parts := wire.persons_parts(m))), [])
    if not any(_can_go(message, opening) for message in head):
        return None
    return Cut(head, tail, opening)


def _can_go(message: Message, opening: list[wire.Part]) -> bool:
    """Whether compacting this message away would save anything: no summary, not what is kept anyway."""
    if wire.is_summary(message):
        return False
    return not opening or not all(any(part is kept for kept in opening) for part in message["parts"])


def _parts(history: Sequence[Message], position: int) -> list[wire.Part]:
    return history[position]["parts"] if position < len(history) else []


def compact_locally(history: Sequence[Message]) -> list[Message] | None:
    """A shorter history, or None when nothing can go. Each call goes one step further than the one before.

    First all tool results but the newest are cleared in place; then the older half of the messages goes,
    cut before a user's message so that no call is split from its result. The newest user message stays.
    """
    return _cleared(history) or _halved(history)


def _cleared(history: Sequence[Message]) -> list[Message] | None:
    with_results = [n for n, message in enumerate(history) if any(map(wire.is_tool_result, message["parts"]))]
    if len(with_results) < 2:
        return None
    newest = with_results[-1]
    shorter = [message if n == newest else _without_results(message) for n, message in enumerate(history)]
    return None if all(a is b for a, b in zip(shorter, history, strict=True)) else shorter


def _without_results(message: Message) -> Message:
    parts = [
        {**part, "content": CLEARED}
        if wire.is_tool_result(part) and len(str(part["content"])) > len(CLEARED)
        else part
        for part in message["parts"]
    ]
    return (
        message
        if all(a is b for a, b in zip(parts, message["parts"], strict=True))
        else {**message, "parts": parts}
    )


def _halved(history: Sequence[Message]) -> list[Message] | None:
    """The newer half, from a user's message on; in one long turn, from a reply on, below its message."""
    middle = len(history) // 2
    later = range(max(middle, 1), len(history))
    start = next((n for n in later if wire.persons_parts(history[n])), None)
    if start is not None:
        opening, kept = history[start], history[start + 1 :]
    else:
        place = max((n for n in range(middle) if wire.persons_parts(history[n])), default=None)
        start = next((n for n in later if history[n]["kind"] == "response"), None)
        if place is None or start is None or start - place < 2:
            return None
        opening, kept = history[place], history[start:]
    gone = len(history) - len(kept) - 1
    note = NOTE.format(count=gone)
    return [
        wire.summary_message(note, of=gone, kept=len(kept), also=wire.persons_parts(opening)),
        *kept,
    ]
