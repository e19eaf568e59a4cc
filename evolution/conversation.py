"""Reading a frozen conversation: who said what, what was answered, and the page to skim. Pure; no Django.

Messages are in the model library's wire form (``agents.history``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from agents.events import Message
from agents.history import is_summary, persons_parts

STAMP = re.compile(
    r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\] ?(?:\(from: session [^)\n]*\) )?", re.MULTILINE
)
"""Every message accepted from a person or an agent starts with its stamp (sessions.md, "The queue")."""

NO_ANSWER = "(The turn ended without an answer.)"
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
_RESULT_CHARS = 400
_ARGUMENT_CHARS = 200


def user_texts(message: Message) -> list[str]:
    """What may be quoted of a user's message: all of it, each part, each of several merged ones. No stamps.

    A summary that compaction wrote is nobody's words.
    """
    parts = [plain_text(part.get("content")) for part in persons_parts(message)]
    if not parts:
        return []
    whole = "\n".join(parts)
    pieces = [whole, *parts, *STAMP.split(whole)]
    texts = (STAMP.sub("", piece).strip() for piece in pieces)
    return list(dict.fromkeys(text for text in texts if text))


def has_user_message(messages: Sequence[Message]) -> bool:
    return any(user_texts(message) for message in messages)


def find_user_message(messages: Sequence[Message], wanted: str) -> int | None:
    """The position of the last user message that says ``wanted``, white space and stamps aside."""
    words = STAMP.sub("", wanted.strip()).split()
    for position in range(len(messages) - 1, -1, -1):
        if any(text.split() == words for text in user_texts(messages[position])):
            return position
    return None


def answer_after(messages: Sequence[Message], position: int) -> str:
    """The last text that was answered to the user message at ``position`` before the next one."""
    answer = NO_ANSWER
    for message in messages[position + 1 :]:
        if user_texts(message):
            break
        if message.get("kind") == "response" and (text := _reply_text(message)):
            answer = text
    return answer


def _reply_text(message: Message) -> str:
    return "\n".join(
        str(part.get("content", "")) for part in message["parts"] if part.get("part_kind") == "text"
    ).strip()


def plain_text(content: Any) -> str:
    """The readable text of a part's content; images and files are named by their type."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_piece, content)))
    return "" if content is None else _encode(content)


def _piece(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    if not isinstance(piece, dict):
        return str(piece)
    if piece.get("kind") == "text" or "text" in piece:
        return str(piece.get("content") or piece.get("text") or "")
    return f"[{piece.get('media_type') or piece.get('kind') or 'attachment'}]"


def tool_flow(messages: Sequence[Message]) -> str:
    """The conversation as Markdown; arguments and results of tools are clipped, what people said is not."""
    return "\n\n".join(["# Conversation", *_entries(messages)]) + "\n"


def _entries(messages: Sequence[Message]) -> Iterator[str]:
    for number, message in enumerate(messages, start=1):
        speaker = "User" if message.get("kind") == "request" else "Agent"
        summary = message["parts"][0] if is_summary(message) else None
        for part in message["parts"]:
            text = _part_entry(part)
            if text:
                heading = "System" if part is summary else _heading(part, speaker)
                yield f"## {number}. {heading}\n\n{text}"


def _heading(part: dict[str, Any], speaker: str) -> str:
    match part.get("part_kind"):
        case "tool-call":
            return f"Call of {part.get('tool_name', '?')}"
        case "tool-return" | "retry-prompt" if part.get("tool_name"):
            failed = part.get("part_kind") == "retry-prompt" or part.get("outcome", "success") != "success"
            return f"Result of {part['tool_name']}{' (failed)' if failed else ''}"
        case "system-prompt":
            return "System"
    return speaker


def _part_entry(part: dict[str, Any]) -> str:
    match part.get("part_kind"):
        case "user-prompt":
            return STAMP.sub("", plain_text(part.get("content"))).strip()
        case "text":
            return str(part.get("content", "")).strip()
        case "tool-call":
            arguments = part.get("args")
            text = arguments if isinstance(arguments, str) else _encode(arguments)
            return clipped(text, _ARGUMENT_CHARS)
        case "tool-return" | "retry-prompt":
            return clipped(plain_text(part.get("content")), _RESULT_CHARS)
        case "system-prompt":
            return clipped(plain_text(part.get("content")), _RESULT_CHARS)
    return ""


def clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"
