"""A session's title: its first user message, 60 characters, without what editors put in front."""

from __future__ import annotations

import re

LENGTH = 60

_EDITOR_BLOCK = re.compile(
    r"\s*<(ide_\w+|editor_\w+|system-reminder|context|current_file|open_files)\b[^>]*>.*?</\1>", re.DOTALL
)
_EDITOR_LINE = re.compile(r"\s*\[(?:File|Selection|Editor|Cursor|Open files?)\b[^\]\n]*\]\s*")


def title_of(text: str) -> str:
    """One line; empty when nothing is left of the message."""
    begin = 0
    while found := _EDITOR_BLOCK.match(text, begin) or _EDITOR_LINE.match(text, begin):
        begin = found.end()
    line = " ".join(text[begin:].split())
    return line if len(line) <= LENGTH else line[: LENGTH - 1].rstrip() + "…"
