"""Cutting text where a reader sees one character end: never within an accent, a flag or an emoji family.

The rules are those of Unicode's UAX 29 on the careful side: where they need tables that Python doesn't ship, two
code points are kept together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_JOINER = "\u200d"
_EXTENDING = frozenset({"Mn", "Me", "Mc"})


def clusters(text: str) -> Iterator[str]:
    """``text`` in pieces of one or more code points; joined they are ``text``."""
    start = flags = 0
    for at in range(1, len(text)):
        before, after = text[at - 1], text[at]
        flags = flags + 1 if _is_flag_half(before) else 0
        if not _belong_together(before, after, flags):
            yield text[start:at]
            start = at
    if text:
        yield text[start:]


def _belong_together(before: str, after: str, flags: int) -> bool:
    if before == "\r":
        return after == "\n"
    if before == "\n" or after in "\r\n":
        return False
    if after == _JOINER or before == _JOINER or _extends(after):
        return True
    if _is_flag_half(after):
        return flags % 2 == 1
    return _is_prepended(before) or (_is_hangul(before) and _is_hangul_part(after))


def _extends(character: str) -> bool:
    """Accents, vowel signs, variation selectors, skin tones, tags, half-width voicing marks, non-joiners."""
    code = ord(character)
    return (
        unicodedata.category(character) in _EXTENDING
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xE0020 <= code <= 0xE007F
        or code in (0x200C, 0xFF9E, 0xFF9F, 0x0E33, 0x0EB3)
    )


def _is_flag_half(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _is_prepended(character: str) -> bool:
    """Signs that stand before the number or letter they belong to."""
    code = ord(character)
    return (
        0x0600 <= code <= 0x0605
        or code in (0x06DD, 0x070F, 0x08E2, 0x0D4E, 0x110BD, 0x110CD)
        or 0x111C2 <= code <= 0x111C3
    )


def _is_hangul(character: str) -> bool:
    code = ord(character)
    return 0x1100 <= code <= 0x11FF or 0xA960 <= code <= 0xA97F or 0xAC00 <= code <= 0xD7FF


def _is_hangul_part(character: str) -> bool:
    """A conjoining vowel or final; a leading consonant or a whole syllable begins anew."""
    code = ord(character)
    return 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FF
