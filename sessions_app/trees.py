"""Ids and rows of a tree: ``root``, ``root>child``, ``root>child>grandchild``."""

from __future__ import annotations

from django.db import connection
from django.db.models import Q

from core.ids import new_session_segment

SEPARATOR = ">"
_BEHIND_SEPARATOR = chr(ord(SEPARATOR) + 1)
MAX_ID_LENGTH = 300


def root_of(session_id: str) -> str:
    return session_id.split(SEPARATOR, 1)[0]


def parent_of(session_id: str) -> str:
    """Empty for a root."""
    return session_id.rpartition(SEPARATOR)[0]


def depth_of(session_id: str) -> int:
    """0 for a root."""
    return session_id.count(SEPARATOR)


def line_of(session_id: str) -> list[str]:
    """The session and all above it, the root first."""
    parts = session_id.split(SEPARATOR)
    return [SEPARATOR.join(parts[: count + 1]) for count in range(len(parts))]


def is_below(session_id: str, above: str) -> bool:
    return session_id.startswith(above + SEPARATOR)


def child_id(parent_id: str) -> str:
    return f"{parent_id}{SEPARATOR}{new_session_segment()}"


def below(session_id: str, *, of: str = "pk") -> Q:
    """Rows of the sessions below this one, found by an index; ``of``: where the row has the session's id.

    SQLite compares byte by byte and uses no index for LIKE; PostgreSQL has one for prefixes.
    """
    if connection.vendor == "sqlite":
        first, behind = session_id + SEPARATOR, session_id + _BEHIND_SEPARATOR
        return Q(**{f"{of}__gt": first, f"{of}__lt": behind})
    return Q(**{f"{of}__startswith": session_id + SEPARATOR})


def within(session_id: str, *, of: str = "pk") -> Q:
    """Rows of this session and of those below it."""
    return Q(**{of: session_id}) | below(session_id, of=of)
