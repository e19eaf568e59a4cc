"""A conversation as the model sees it: wire-form messages, made without the model library.

A message is ``{"kind": "request" | "response", "parts": [...]}``; parts are told apart by ``part_kind``
(``user-prompt``, ``tool-return``, ``text``, ``thinking``, ``tool-call``). Messages are never edited in place:
a change replaces the dict, so that converted forms and logs can go by identity.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from agents.events import Message
from core import clock

Part = dict[str, Any]

CUT_SHORT = (
    "This call was cut short and has no result. It may or may not have had its effect: "
    "check before you repeat it, and do not repeat it blindly."
)
SUMMARY = "halo_summary"
"""The key in a message's ``metadata`` by which every reader knows a summary."""

IMAGE_REMOVED = "[image removed: the model's provider refused it]"
PARTIAL_FAILED = "\n\n[this reply was cut off: the model call failed]"
PARTIAL_ABORTED = "\n\n[this reply was cut off: the turn was stopped]"
PARTIAL_SHUTDOWN = "\n\n[this reply was cut off: the server was shut down]"


def user_message(text: str, images: Sequence[tuple[str, bytes]] = ()) -> Message:
    """A user's message; ``images`` are (media type, bytes) and come before the text."""
    if not images:
        return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}
    content: list[Any] = [
        {"kind": "binary", "media_type": media_type, "data": base64.urlsafe_b64encode(data).decode()}
        for media_type, data in images
    ]
    content.append(text)
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": content}]}


def reply_message(parts: Iterable[Part], **fields: Any) -> Message:
    return {"kind": "response", "parts": list(parts), **fields}


def summary_message(text: str, *, of: int, kept: int, also: Sequence[Part] = ()) -> Message:
    """What stands for the ``of`` messages before it, followed by ``kept`` that are older than it.

    ``also``: parts of a message that goes on being worked on, word for word behind the summary.
    """
    return {
        "kind": "request",
        "parts": [{"part_kind": "user-prompt", "content": text}, *also],
        "metadata": {SUMMARY: {"of": of, "kept": kept}},
    }


def is_summary(message: Message) -> bool:
    """Whether compaction wrote this message; its first part is the summary, the others are a person's."""
    return _summary_of(message) is not None


def kept_behind(message: Message) -> int:
    """How many messages behind a summary are older than it; 0 for any other message."""
    summary = _summary_of(message) or {}
    kept = summary.get("kept")
    return kept if isinstance(kept, int) else 0


def persons_parts(message: Message) -> list[Part]:
    """The user-prompt parts that a person, another session or the system wrote; no summary is among them."""
    if message.get("kind") != "request":
        return []
    parts = message["parts"][1:] if is_summary(message) else message["parts"]
    return [part for part in parts if part.get("part_kind") == "user-prompt"]


def _summary_of(message: Message) -> dict[str, Any] | None:
    metadata = message.get("metadata")
    summary = metadata.get(SUMMARY) if isinstance(metadata, dict) else None
    return summary if isinstance(summary, dict) else None


def text_part(text: str) -> Part:
    return {"part_kind": "text", "content": text}


def tool_call_part(*, call_id: str, tool: str, arguments: dict[str, Any]) -> Part:
    return {"part_kind": "tool-call", "tool_name": tool, "args": arguments, "tool_call_id": call_id}


def tool_result_part(*, call_id: str, tool: str, text: str, is_error: bool = False) -> Part:
    return {
        "part_kind": "tool-return",
        "tool_name": tool,
        "content": text,
        "tool_call_id": call_id,
        "timestamp": clock.stamp(clock.now()),
        "outcome": "failed" if is_error else "success",
    }


def with_part(message: Message, part: Part) -> Message:
    """A copy of ``message`` with one more part."""
    return {**message, "parts": [*message["parts"], part]}


def tool_calls(message: Message) -> list[Part]:
    if message["kind"] != "response":
        return []
    return [part for part in message["parts"] if part["part_kind"] == "tool-call"]


def is_tool_result(part: Part) -> bool:
    kind = part["part_kind"]
    return kind == "tool-return" or (kind == "retry-prompt" and bool(part.get("tool_name")))


def message_text(message: Message) -> str:
    """The plain text of a message: prompts of a request, text of a response."""
    pieces: list[str] = []
    for part in message["parts"]:
        if part["part_kind"] not in ("user-prompt", "text"):
            continue
        content = part["content"]
        pieces += [content] if isinstance(content, str) else [c for c in content if isinstance(c, str)]
    return "\n".join(pieces)


def without_images(history: Sequence[Message]) -> list[Message]:
    """The history with every image replaced by a line of text; untouched messages stay the same objects."""
    return [_message_without_images(message) for message in history]


def has_images(history: Sequence[Message]) -> bool:
    return any(_message_without_images(message) is not message for message in history)


def _message_without_images(message: Message) -> Message:
    parts = [_part_without_images(part) for part in message["parts"]]
    changed = any(a is not b for a, b in zip(parts, message["parts"], strict=True))
    return {**message, "parts": parts} if changed else message


def _part_without_images(part: Part) -> Part:
    content = part.get("content")
    if isinstance(content, dict) and _is_image(content):
        return {**part, "content": IMAGE_REMOVED}
    if not isinstance(content, list) or not any(_is_image(item) for item in content):
        return part
    return {**part, "content": [IMAGE_REMOVED if _is_image(item) else item for item in content]}


def _is_image(item: Any) -> bool:
    if not isinstance(item, dict):
        return False
    if item.get("kind") == "image-url":
        return True
    return item.get("kind") == "binary" and str(item.get("media_type", "")).startswith("image/")
