"""Text from outside made fit for where it goes: an encoder, a person's terminal."""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

MAX_DEPTH = 64
"""Nested deeper, a value can't be handed on safely: encoders and validators recurse."""

_KEPT = "\n\t"
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji need them between letters
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def encodable(text: str) -> str:
    """``text`` without lone surrogates: halves that stand together become one character, others U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def encodable_value(value: Any) -> Any:
    """JSON-like ``value`` with all of its texts ``encodable``, keys included; a number that JSON has no name for
    becomes the word that Python reads and writes for it (``"NaN"``), which no browser's parser chokes on.
    """
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable_value(key): encodable_value(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return [encodable_value(item) for item in value] if isinstance(value, list) else value


def nests_deeper(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether mappings and lists lie in one another more than ``limit`` deep; never recurses."""
    level = [value]
    for _ in range(limit):
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def is_one_line(text: str) -> bool:
    """Whether ``text`` is UTF-8 without control characters: a name that can stand in a line among others."""
    return text.isprintable() or not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)


def for_terminal(text: str) -> str:
    """``text`` as it may be printed to a person: what would steer the terminal, turn the line around or hide
    itself is shown as an escape (``\\x1b``, ``\\u202e``) instead of being obeyed.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(character if _is_plain(character) else _escaped(character) for character in text)


def _is_plain(character: str) -> bool:
    return character in _KEPT or character in _JOINERS or unicodedata.category(character) not in _INVISIBLE


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


_NOT_IN_JSON = re.compile(
    r"[\x7f-\x9f\xad\u0600-\u0605\u061c\u200b\u200e-\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def json_text(value: Any) -> str:
    """``value`` as JSON for people and programs: readable, and harmless on a terminal as well."""
    written = json.dumps(value, ensure_ascii=False, indent=1)
    return _NOT_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], written)


def span_words(span: timedelta) -> str:
    """One unit: ``3 s``, ``5 min``, ``2 h``, ``4 d``."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def moment_words(moment: datetime) -> str:
    """``2026-01-31 09:30:00 UTC``, as every page writes it."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def error_words(error: Exception) -> str:
    """An error as a person reads it: of one of the system's, file and reason without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)
