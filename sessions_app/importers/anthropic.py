"""Message lists of the Messages API: ``{"role": "user" | "assistant", "content": text or blocks}``."""

from __future__ import annotations

from typing import Any

from agents import history as wire
from sessions_app.importers.blocks import reply_part, result_part, said
from sessions_app.importers.building import Stamps, build
from sessions_app.importers.imported import Imported, ImportFailed
from sessions_app.importers.message_file import MessageFile, Said, read_messages

_BLOCKS = (b'"tool_use"', b'"tool_result"', b'"thinking"', b'"source"')


def recognise(data: bytes) -> bool:
    """Whether ``data`` holds blocks that only this format has, or a system prompt beside the messages."""
    try:
        found = read_messages(data)
    except ImportFailed:
        return b'"role"' in data and any(mark in data for mark in _BLOCKS)
    return "system" in found.around or any(
        block.get("type") in ("tool_use", "tool_result", "thinking", "redacted_thinking")
        or isinstance(block.get("source"), dict)
        for message in found.messages
        for block in blocks_of(message)
    )


def parse(data: bytes) -> Imported:
    """Raises ImportFailed with the line."""
    return converted(read_messages(data))


def converted(file: MessageFile) -> Imported:
    result, given = Imported(), Stamps()
    tools: dict[str, str] = {}
    if file.around.get("system"):
        result.left_out["system prompt"] += 1
    for message in file.messages:
        blocks = blocks_of(message)
        match message.role:
            case "user":
                parts = [result_part(block, tools) for block in blocks if block.get("type") == "tool_result"]
                found = [item for b in blocks if b.get("type") != "tool_result" for item in said(b)]
                parts += given.prompt_parts(found)
                if parts:
                    result.messages.append({"kind": "request", "parts": parts})
            case "assistant":
                replied = [part for block in blocks if (part := reply_part(block, tools, result.left_out))]
                result.messages.append(wire.reply_message(replied))
            case "system":
                result.left_out["system prompt"] += 1
            case other:
                raise ImportFailed(
                    message.line, f"the role {other[:40]!r} isn't one of user, assistant, system"
                )
    build(result, last_line=file.last_line)
    return result


def blocks_of(message: Said) -> list[dict[str, Any]]:
    """The content as a list of blocks. Raises ImportFailed for a content of another kind."""
    content = message.value.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return content
    raise ImportFailed(message.line, "the content is neither a text nor a list of blocks")
