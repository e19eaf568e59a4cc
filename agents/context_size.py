"""How many tokens the next request will hold: what the provider counted last, and an estimate of the rest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents import history as wire
from agents.events import Message

BYTES_PER_TOKEN = 4
"""Of UTF-8: close enough for European languages and, with three bytes a character, for Chinese and Japanese."""
TOKENS_PER_IMAGE = 1_500


def context_tokens(history: Sequence[Message], *, system_prompt: str = "") -> int:
    """The count of the newest reply with its own output, and an estimate of what came after it.

    A reply that a summary stands before was counted with all that the summary replaced; it says nothing now.
    A count below half of the estimate isn't believed: some servers leave out what they had in their cache.
    """
    stale_until = 0
    for position, message in enumerate(history):
        if wire.is_summary(message):
            stale_until = position + 1 + wire.kept_behind(message)
    for position in range(len(history) - 1, stale_until - 1, -1):
        counted = _counted(history[position])
        if counted:
            return max(counted + estimate(history[position + 1 :]), estimate(history) // 2)
    return text_tokens(system_prompt) + estimate(history)


def estimate(messages: Sequence[Message]) -> int:
    return sum(_part_tokens(part) for message in messages for part in message["parts"])


def text_tokens(text: str) -> int:
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN


def _counted(message: Message) -> int:
    usage = message.get("usage")
    if message["kind"] != "response" or not isinstance(usage, dict) or not usage.get("input_tokens"):
        return 0
    return int(usage["input_tokens"]) + int(usage.get("output_tokens", 0))


def _part_tokens(part: dict[str, Any]) -> int:
    value = part.get("content") if part.get("content") is not None else part.get("args")
    pieces = value if isinstance(value, list) else [value]
    return 1 + sum(_piece_tokens(piece) for piece in pieces)


def _piece_tokens(piece: Any) -> int:
    if isinstance(piece, str):
        return text_tokens(piece)
    if isinstance(piece, dict) and piece.get("kind") in ("binary", "image-url"):
        return TOKENS_PER_IMAGE
    return 0 if piece is None else text_tokens(json.dumps(piece, default=str))
