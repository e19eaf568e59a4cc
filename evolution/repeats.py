"""Which lines of a draft repeat what a conversation brought in: a reviewer sees where a rule came from. No Django."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agents.events import Message
from evolution.conversation import STAMP, plain_text

IN_A_ROW = 5
MAX_WORDS = 200_000
_WORD = re.compile(r"\w+")
_BROUGHT_IN = frozenset({"tool-return", "retry-prompt", "user-prompt"})

Passages = dict[tuple[str, ...], int]
"""Every five words in a row that were said, and the number of the message that said them first."""


def passages(messages: Sequence[Message]) -> Passages:
    """Of what people and tools said; what the agent itself answered is no source. At most ``MAX_WORDS`` words."""
    found: Passages = {}
    left = MAX_WORDS
    for number, message in enumerate(messages, start=1):
        for part in message.get("parts", ()):
            if part.get("part_kind") in _BROUGHT_IN:
                words = _words(_text(part))[: max(left, 0)]
                left -= len(words)
                for run in _runs(words):
                    found.setdefault(run, number)
    return found


def repeats(line: str, said: Passages) -> int | None:
    """The number of the message that ``line`` repeats five words in a row of."""
    return next((said[run] for run in _runs(_words(line)) if run in said), None)


def _text(part: dict[str, Any]) -> str:
    return STAMP.sub("", plain_text(part.get("content")))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + IN_A_ROW]) for at in range(len(words) - IN_A_ROW + 1)]
