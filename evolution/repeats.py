"""Which lines of a draft repeat what a conversation brought in: a reviewer sees where a rule came from. No Django.

Five words or more in a row count, also across the ends of lines. What hides itself between letters, other widths of
the same letter, case and markup make no difference. The conversation is read once, in pieces, and only what the
draft says is kept: time grows with its length, memory doesn't.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agents.events import Message
from evolution.conversation import STAMP

IN_A_ROW = 5
_PIECE_CHARS = 262_144
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
"""In scripts without spaces every character is a word."""
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    "\ufeff\U000e0000-\U000e0fff]"
)
_BROUGHT_IN = frozenset({"tool-return", "retry-prompt", "user-prompt"})

Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The message, counted from 1, that said it first, and what of it: a tool's result or a person's words."""

    message: int
    what: str


def sources_of(blocks: Sequence[Sequence[str]], messages: Sequence[Message]) -> list[list[Source | None]]:
    """For each line of each block (lines that stand together) where its words came from, if from there."""
    said: dict[Run, list[tuple[int, int]]] = {}
    for block_number, block in enumerate(blocks):
        words = [(word, number) for number, line in enumerate(block) for word in _words(line)]
        for at in range(len(words) - IN_A_ROW + 1):
            stretch = words[at : at + IN_A_ROW]
            places = said.setdefault(tuple(word for word, _ in stretch), [])
            places += [(block_number, number) for number in {number for _, number in stretch}]
    found: list[list[Source | None]] = [[None] * len(block) for block in blocks]
    for run, source in _first_said(set(said), messages):
        for block_number, number in said[run]:
            known = found[block_number][number]
            if known is None or source.message < known.message:
                found[block_number][number] = source
    return found


def _first_said(wanted: set[Run], messages: Sequence[Message]) -> Iterator[tuple[Run, Source]]:
    for number, message in enumerate(messages, start=1):
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if not wanted:
                return
            if not isinstance(part, dict) or part.get("part_kind") not in _BROUGHT_IN:
                continue
            name = part.get("tool_name")
            source = Source(number, f"result of {name}" if name else "a person's words")
            for text in _texts(part.get("content")):
                for run in _runs_in(STAMP.sub("", text), wanted):
                    wanted.discard(run)
                    yield run, source


def _runs_in(text: str, wanted: set[Run]) -> set[Run]:
    found: set[Run] = set()
    before: list[str] = []
    for piece in _pieces(text):
        words = before + _words(piece)
        found |= wanted.intersection(zip(*(words[at:] for at in range(IN_A_ROW)), strict=False))
        before = words[-(IN_A_ROW - 1) :]
    return found


def _pieces(text: str) -> Iterator[str]:
    """``text`` in pieces that end at white space, where there is any."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE_CHARS)
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space + 1 if space > start else end
        yield text[start:end]
        start = end


def _words(text: str) -> list[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    return _WORD.findall(text.casefold())


def _texts(content: Any) -> Iterator[str]:
    """Every text in a part's content, however it is nested; binary data has none."""
    pending = [content]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending += [value for key, value in reversed(item.items()) if key != "data"]
        elif isinstance(item, list):
            pending += reversed(item)
