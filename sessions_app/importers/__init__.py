"""Conversations recorded elsewhere, as messages and rows. One module a format; none knows Django.

Later formats (OpenAI and Anthropic message lists, Halo 1.x) get a module beside ``claude_code`` and a line in
``FORMATS``.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.importers import claude_code
from sessions_app.importers.imported import Imported, ImportFailed

FORMATS: dict[str, Callable[[bytes], Imported]] = {"claude-code": claude_code.parse}
RECOGNISE: dict[str, Callable[[bytes], bool]] = {"claude-code": claude_code.recognise}

__all__ = ["FORMATS", "RECOGNISE", "ImportFailed", "Imported", "parse"]


def parse(data: bytes, *, format: str = "auto") -> Imported:
    """The conversation in ``data``; ``auto`` goes by the content. Raises ImportFailed naming the line."""
    if not data.strip():
        raise ImportFailed(1, "the file is empty")
    if format == "auto":
        format = next((name for name, fits in RECOGNISE.items() if fits(data)), "")
        if not format:
            raise ImportFailed(1, f"the format isn't recognised; known formats: {', '.join(sorted(FORMATS))}")
    return FORMATS[format](data)
