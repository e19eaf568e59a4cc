"""A run's hint as its row holds it."""

from __future__ import annotations

from core import hashes
from core.db.text import storable


def hint_values(hint: str) -> dict[str, str]:
    """The columns of a hint. An index holds its hash: PostgreSQL's take 2,704 bytes, a hint has up to 16,000."""
    text: str = storable(hint.strip())
    return {"user_hint": text, "hint_key": hashes.of_bytes(text.encode())}


NO_HINT = hint_values("")["hint_key"]
