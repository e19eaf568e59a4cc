"""How long a text may be that a person gives along: it goes into every later brief of the run."""

from __future__ import annotations

from evolution.errors import Refused

MAX_HINT_CHARS = 4_000


def check_length(text: str, name: str) -> None:
    """``name`` is ``hint`` or ``reason``. Raises Refused ``hint_too_long`` or ``reason_too_long``."""
    if len(text) > MAX_HINT_CHARS:
        raise Refused(
            f"{name}_too_long",
            f"The {name} has {len(text):,} characters; at most {MAX_HINT_CHARS:,} are taken.",
        )
