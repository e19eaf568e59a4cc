"""A session file of Halo 1.x: one JSON object with a header, ``messages`` (for people), ``rawMessages`` (the model's).

The conversation is taken from ``rawMessages``, whose blocks are those of the Messages API; arrival stamps in it
stay. A file without them gives what people saw: the texts of ``messages``.
"""

from __future__ import annotations

from typing import Any

from sessions_app.importers import anthropic
from sessions_app.importers.imported import Imported, ImportFailed
from sessions_app.importers.message_file import read_messages
from sessions_app.titles import title_of

RAW = "rawMessages"


def recognise(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{" and f'"{RAW}"'.encode() in data


def parse(data: bytes) -> Imported:
    """Raises ImportFailed with the line."""
    file = read_messages(data, key=RAW)
    if not file.around:
        raise ImportFailed(1, f"a session file of Halo 1.x is one object with {RAW}")
    shown = file.around.get("messages")
    if not file.messages and isinstance(shown, list):
        file = read_messages(data)
    result = anthropic.converted(file)
    result.title = title_of(_text(file.around.get("title"))) or result.title
    if isinstance(shown, list) and (
        deleted := sum(isinstance(m, dict) and bool(m.get("deleted")) for m in shown)
    ):
        result.left_out["row that was deleted"] += deleted
    return result


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
