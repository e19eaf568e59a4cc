"""Content blocks of the Messages API, as Claude Code's files and message lists hold them."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import MutableMapping
from typing import Any

from agents import history as wire

SHOWN_CHARS = 2000


def reply_part(
    block: dict[str, Any], tools: MutableMapping[str, str], left_out: Counter[str]
) -> dict[str, Any] | None:
    """One part of a reply; the names of called tools are added to ``tools``. None for what is left out."""
    match block.get("type"):
        case "text":
            return wire.text_part(str(block.get("text", "")))
        case "thinking":
            return {"part_kind": "thinking", "content": str(block.get("thinking", ""))}
        case "tool_use":
            call_id, tool = str(block.get("id", "")), str(block.get("name", "") or "unknown")
            tools[call_id] = tool
            arguments = block.get("input")
            return wire.tool_call_part(
                call_id=call_id,
                tool=tool,
                arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
            )
        case "redacted_thinking":
            left_out["redacted thinking"] += 1
            return None
        case other:
            return wire.text_part(f"[{other}] {shown(block)}")


def result_part(block: dict[str, Any], tools: MutableMapping[str, str]) -> dict[str, Any]:
    """A ``tool_result`` block, its images behind its text."""
    call_id = str(block.get("tool_use_id", ""))
    content = block.get("content")
    pieces = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    found = [item for piece in pieces if isinstance(piece, dict) for item in said(piece)]
    part = wire.tool_result_part(
        call_id=call_id,
        tool=tools.get(call_id, "unknown"),
        text="\n".join(item for item in found if isinstance(item, str)),
        is_error=bool(block.get("is_error")),
    )
    images = [item for item in found if isinstance(item, dict)]
    return {**part, "content": [part["content"], *images]} if images else part


def shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:SHOWN_CHARS]


def said(block: dict[str, Any]) -> list[Any]:
    """Texts as strings, images as wire-form pieces; what can't be shown becomes a line of text."""
    match block.get("type"):
        case "text":
            text = str(block.get("text", ""))
            return [text] if text else []
        case "image":
            return [image(block.get("source"))]
        case "document":
            return ["[document, not imported]"]
        case other:
            return [f"[{other}] {shown(block)}"]


def image(source: Any) -> Any:
    if not isinstance(source, dict):
        return "[image, not readable]"
    if source.get("type") == "url":
        return f"[image: {source.get('url', '')}]"
    return image_bytes(str(source.get("media_type", "")), str(source.get("data", "")))


def image_bytes(media_type: str, encoded: str) -> Any:
    """A wire-form piece of an image in base64, or the line of text that stands for one that isn't."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "[image, not readable]"
    if not data or not media_type.startswith("image/"):
        return "[image, not readable]"
    return {"kind": "binary", "media_type": media_type, "data": base64.urlsafe_b64encode(data).decode()}
