"""Making a history shorter without asking a model: what is done when the provider says it is too long."""

from __future__ import annotations

from collections.abc import Sequence

from agents import history as wire
from agents.events import Message

CLEARED = "[result cleared to make room; call the tool again if it is needed]"
NOTE = "[The earlier part of this conversation was left out to make room: {count} messages.]"


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
    start = next((n for n in later if _is_users(history[n])), None)
    if start is not None:
        first, kept = history[start], history[start + 1 :]
    else:
        opening = max((n for n in range(middle) if _is_users(history[n])), default=None)
        start = next((n for n in later if history[n]["kind"] == "response"), None)
        if opening is None or start is None or start - opening < 2:
            return None
        first, kept = history[opening], history[start:]
    note = {"part_kind": "user-prompt", "content": NOTE.format(count=len(history) - len(kept) - 1)}
    return [{**first, "parts": [note, *first["parts"]]}, *kept]


def _is_users(message: Message) -> bool:
    return message["kind"] == "request" and not any(map(wire.is_tool_result, message["parts"]))
