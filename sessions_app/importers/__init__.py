"""Conversations recorded elsewhere, as messages and rows. One module a format; none knows Django."""

from __future__ import annotations

from types import ModuleType

from sessions_app.importers import anthropic, claude_code, halo_v1, openai
from sessions_app.importers.imported import Imported, ImportFailed

FORMATS: dict[str, ModuleType] = {
    "claude-code": claude_code,
    "halo-v1": halo_v1,
    "anthropic": anthropic,
    "openai": openai,
}
"""By name, the most telling first: ``auto`` takes the first that recognises the file."""

__all__ = ["FORMATS", "ImportFailed", "Imported", "parse"]


def parse(data: bytes, *, format: str = "auto") -> Imported:
    """The conversation in ``data``; ``auto`` goes by the content. Raises ImportFailed naming the line."""
    if not data.strip():
        raise ImportFailed(1, "the file is empty")
    if format == "auto":
        format = next((name for name, module in FORMATS.items() if module.recognise(data)), "")
        if not format:
            raise ImportFailed(1, f"the format isn't recognised; known formats: {', '.join(sorted(FORMATS))}")
    imported: Imported = FORMATS[format].parse(data)
    return imported
