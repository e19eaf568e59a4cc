"""Identifiers: sortable ones for rows, unguessable ones for sessions.

``ulid`` is imported by what makes or reads a row id: it takes a fifth of the time in which a wrapper starts.
"""

from __future__ import annotations

import re
import secrets
import string
from datetime import datetime

_SEGMENT_ALPHABET = string.ascii_lowercase + string.digits
_ROW_ID = re.compile(r"[0-9a-z]{26}")
_SEGMENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def new_row_id() -> str:
    """A lower-case ULID: 26 characters that sort by creation time."""
    from ulid import ULID

    return str(ULID()).lower()


def first_row_id_at(moment: datetime) -> str:
    """No row made at ``moment`` or later has a smaller id."""
    from ulid import ULID

    milliseconds = int(moment.timestamp() * 1000)
    return str(ULID.from_bytes(milliseconds.to_bytes(6) + bytes(10))).lower()


def time_of_row_id(text: str) -> datetime | None:
    """When a row id was made; None for what only looks like one."""
    from ulid import ULID

    try:
        return ULID.from_str(text.upper()).datetime
    except ValueError:
        return None


def new_session_segment() -> str:
    """16 random characters, one segment of a session id (``root>child``)."""
    return "".join(secrets.choice(_SEGMENT_ALPHABET) for _ in range(16))


def session_segment_of(secret: bytes) -> str:
    """The same segment for the same bytes; as hard to guess as they are. At least 16 of them."""
    number, letters = int.from_bytes(secret), []
    for _ in range(16):
        number, place = divmod(number, len(_SEGMENT_ALPHABET))
        letters.append(_SEGMENT_ALPHABET[place])
    return "".join(letters)


def is_row_id(text: str) -> bool:
    return _ROW_ID.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Whether every ``>``-separated segment is safe to use as a file name."""
    return all(_SEGMENT.fullmatch(segment) for segment in text.split(">"))
