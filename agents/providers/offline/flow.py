"""A conversation as frozen: who said what, read from ``tool-flow.md`` or the raw snapshot."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_HEADING = re.compile(r"^## (\d+)\. (User|Agent|System|Call of .+|Result of .+)$")
_GAP = 3
_STAMP = re.compile(r"^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] ?", re.MULTILINE)


@dataclass(slots=True)
class Exchange:
    """A person's message and the last text the agent said before the next one."""

    message: str
    answer: str = ""


def exchanges(tool_flow: str) -> list[Exchange]:
    """Headings count up in small steps (a message may have nothing to show); others are text someone wrote.

    The text may begin in the middle of a conversation.
    """
    talk: list[Exchange] = []
    speaker, latest, held = "", -1, list[str]()
    for line in tool_flow.splitlines():
        found = _HEADING.match(line)
        if found is None or (latest >= 0 and not latest <= int(found[1]) <= latest + _GAP):
            held.append(line)
            continue
        _add(talk, speaker, "\n".join(held))
        speaker, latest, held = found[2], int(found[1]), []
    _add(talk, speaker, "\n".join(held))
    return talk


def from_snapshot(snapshot: str) -> list[Exchange]:
    """The same from the raw messages, in the model library's wire form."""
    try:
        data = json.loads(snapshot)
    except ValueError:
        return []
    talk: list[Exchange] = []
    for message in data.get("messages", []) if isinstance(data, dict) else data:
        for part in message.get("parts", []):
            kind = {"user-prompt": "User", "text": "Agent"}.get(part.get("part_kind"), "")
            _add(talk, kind, without_stamp(_text(part.get("content", ""))))
    return talk


def without_stamp(text: str) -> str:
    """A message as the person wrote it: the session's stamp in front of it is no part of it."""
    return _STAMP.sub("", text)


def _add(talk: list[Exchange], speaker: str, text: str) -> None:
    if speaker == "User" and text.strip():
        talk.append(Exchange(text.strip()))
    elif speaker == "Agent" and text.strip() and talk:
        talk[-1].answer = text.strip()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(piece for piece in content if isinstance(piece, str))
