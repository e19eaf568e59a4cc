"""Claude Code session files (``~/.claude/projects/<folder>/<session>.jsonl``)."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from agents import history as wire
from core import clock
from sessions_app import stamps
from sessions_app.importers.claude_lines import Line, conversation, read_lines
from sessions_app.importers.imported import Imported, ImportFailed
from sessions_app.logs import records as make
from sessions_app.logs.agreement import closed_blocks, plain_text, rows_of, tool_results
from sessions_app.logs.records import Message
from sessions_app.titles import title_of

_MARKS = (b'"sessionId"', b'"parentUuid"', b'"isSidechain"', b'"leafUuid"')
_HEAD = 65_536


def recognise(data: bytes) -> bool:
    """Whether ``data`` looks like such a file (by the first 64 KiB)."""
    head = data[:_HEAD]
    return b'"type"' in head and any(mark in head for mark in _MARKS)


def parse(data: bytes) -> Imported:
    """The main conversation with its tool calls, results and images. Raises ImportFailed with the line.

    Left out, and counted by reason: sidechains, abandoned branches, lines the program wrote for itself.
    """
    converter = _Converter()
    lines = read_lines(data, converter.result.left_out)
    if not lines:
        raise ImportFailed(1, "the file holds no line")
    for line in lines:
        converter.side_line(line)
    for line in conversation(lines, converter.result.left_out):
        converter.spoken_line(line)
    return converter.finish(lines)


class _Converter:
    def __init__(self) -> None:
        self.result = Imported()
        self._tools: dict[str, str] = {}
        self._reply: tuple[str, Message] | None = None
        self._reply_ids: dict[str, Message] = {}
        self._stamps: set[str] = set()
        self._notes: list[tuple[int, make.Row]] = []

    def side_line(self, line: Line) -> None:
        """What isn't said by anybody: titles, and lines that only the program itself reads."""
        match line.type:
            case "custom-title":
                self.result.title = title_of(str(line.value.get("customTitle") or "")) or self.result.title
            case "summary" | "ai-title":
                self.result.left_out["title line"] += 1
            case "user" | "assistant" | "system":
                pass
            case other:
                self.result.left_out[f"line of type {other[:40] or '(none)'}"] += 1

    def spoken_line(self, line: Line) -> None:
        if line.type == "system":
            self._system_line(line)
        elif line.type == "assistant":
            self._assistant_line(line)
        else:
            self._user_line(line)

    def finish(self, lines: list[Line]) -> Imported:
        result = self.result
        notes = self._note_positions()
        result.messages = wire.repair(result.messages)
        if not any(_prompts(message) for message in result.messages):
            raise ImportFailed(lines[-1].number, "the file ends without any message of a person")
        results = tool_results(result.messages)
        shown: dict[str, list[str]] = {}
        for message in result.messages:
            result.rows.extend(notes.pop(id(message), []))
            ids = self._row_ids(message, shown)
            result.rows_of.append(ids)
            for row in rows_of(message, ids, results):
                if row["role"] == "assistant":
                    row["blocks"] = closed_blocks(row["blocks"], results)
                elif images := _images_of(_prompts(message)[ids.index(row["id"])]):
                    row["images"] = images
                result.rows.append(row)
        for left in notes.values():
            result.rows.extend(left)
        result.title = result.title or self._first_title()
        return result

    def _row_ids(self, message: Message, shown: dict[str, list[str]]) -> list[str]:
        """A reply and each user text has its own row; results are shown by the row of their calls."""
        if message["kind"] == "response":
            ids = [make.new_row_id()]
            for call in wire.tool_calls(message):
                shown[call["tool_call_id"]] = ids
            return ids
        prompts = [make.new_row_id() for _ in _prompts(message)]
        if prompts:
            return prompts
        return next(
            (shown[part["tool_call_id"]] for part in message["parts"] if part.get("tool_call_id") in shown),
            [],
        )

    def _system_line(self, line: Line) -> None:
        if line.value.get("subtype") == "compact_boundary":
            self._note(line, "note", "The conversation was compacted here.")
        else:
            self.result.left_out["system line"] += 1

    def _assistant_line(self, line: Line) -> None:
        if line.value.get("isApiErrorMessage"):
            text = "\n".join(str(block.get("text", "")) for block in line.blocks)
            self._note(line, "error", text or "The model call failed.")
            return
        parts = [part for block in line.blocks if (part := self._reply_part(block))]
        identifier = line.reply
        if identifier and identifier in self._reply_ids:
            self._reply_ids[identifier]["parts"].extend(parts)
            return
        message = wire.reply_message(parts, timestamp=_moment(line, self._last_moment()).isoformat())
        if isinstance(line.message.get("model"), str):
            message["model_name"] = line.message["model"]
        if identifier:
            self._reply_ids[identifier] = message
        self.result.messages.append(message)

    def _reply_part(self, block: dict[str, Any]) -> dict[str, Any] | None:
        match block.get("type"):
            case "text":
                return wire.text_part(str(block.get("text", "")))
            case "thinking":
                return {"part_kind": "thinking", "content": str(block.get("thinking", ""))}
            case "tool_use":
                call_id, tool = str(block.get("id", "")), str(block.get("name", "") or "unknown")
                self._tools[call_id] = tool
                arguments = block.get("input")
                return wire.tool_call_part(
                    call_id=call_id,
                    tool=tool,
                    arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
                )
            case "redacted_thinking":
                self.result.left_out["redacted thinking"] += 1
                return None
            case other:
                return wire.text_part(f"[{other}] {json.dumps(block, ensure_ascii=False)[:2000]}")

    def _user_line(self, line: Line) -> None:
        if line.value.get("isMeta"):
            self.result.left_out["line the program wrote for itself (meta)"] += 1
            return
        results = [self._result_part(block) for block in line.blocks if block.get("type") == "tool_result"]
        said = [item for block in line.blocks if block.get("type") != "tool_result" for item in _said(block)]
        parts = results
        if line.value.get("isCompactSummary"):
            self._note(line, "note", plain_text(said))
            if len(self.result.messages):
                return
        if said:
            parts = [*results, self._prompt_part(line, said)]
        if parts:
            self.result.messages.append({"kind": "request", "parts": parts})

    def _prompt_part(self, line: Line, said: list[Any]) -> dict[str, Any]:
        moment, step = _moment(line, self._last_moment()), 0
        while (stamp := stamps.after(moment, step)) in self._stamps:
            step += 1
        self._stamps.add(stamp)
        images = [item for item in said if isinstance(item, dict)]
        text = stamps.stamped(stamp, "\n".join(item for item in said if isinstance(item, str)))
        return {"part_kind": "user-prompt", "content": [*images, text] if images else text}

    def _result_part(self, block: dict[str, Any]) -> dict[str, Any]:
        call_id = str(block.get("tool_use_id", ""))
        content = block.get("content")
        pieces = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        said = [item for piece in pieces if isinstance(piece, dict) for item in _said(piece)]
        part = wire.tool_result_part(
            call_id=call_id,
            tool=self._tools.get(call_id, "unknown"),
            text="\n".join(item for item in said if isinstance(item, str)),
            is_error=bool(block.get("is_error")),
        )
        images = [item for item in said if isinstance(item, dict)]
        return {**part, "content": [part["content"], *images]} if images else part

    def _note(self, line: Line, kind: str, text: str) -> None:
        at = clock.stamp(_moment(line, self._last_moment()))
        row = make.system_row(row_id=make.new_row_id(), at=at, kind=kind, text=text)
        self._notes.append((len(self.result.messages), row))

    def _note_positions(self) -> dict[int, list[make.Row]]:
        """Notes by the identity of the message they stand before; 0 for those at the end."""
        found: dict[int, list[make.Row]] = {}
        for position, row in self._notes:
            messages = self.result.messages
            key = id(messages[position]) if position < len(messages) else 0
            found.setdefault(key, []).append(row)
        return found

    def _last_moment(self) -> datetime:
        """For a line without a usable time: just after the newest stamp so far."""
        if not self._stamps:
            return datetime(1970, 1, 1, tzinfo=UTC)
        return datetime.fromisoformat(max(self._stamps)) + timedelta(milliseconds=1)

    def _first_title(self) -> str:
        texts = (row["text"] for row in self.result.rows if row["role"] == "user")
        return next((title for text in texts if (title := title_of(text))), "")


def _prompts(message: Message) -> list[dict[str, Any]]:
    return [part for part in message["parts"] if part.get("part_kind") == "user-prompt"]


def _images_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    content = part.get("content")
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def _moment(line: Line, otherwise: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(str(line.value.get("timestamp")))
    except ValueError:
        return otherwise
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _said(block: dict[str, Any]) -> list[Any]:
    """Texts as strings, images as wire-form pieces; what can't be shown becomes a line of text."""
    match block.get("type"):
        case "text":
            text = str(block.get("text", ""))
            return [text] if text else []
        case "image":
            return [_image(block.get("source"))]
        case "document":
            return ["[document, not imported]"]
        case other:
            return [f"[{other}] {json.dumps(block, ensure_ascii=False)[:2000]}"]


def _image(source: Any) -> Any:
    if not isinstance(source, dict):
        return "[image, not readable]"
    if source.get("type") == "url":
        return f"[image: {source.get('url', '')}]"
    try:
        data = base64.b64decode(str(source.get("data", "")), validate=True)
    except (binascii.Error, ValueError):
        return "[image, not readable]"
    media_type = str(source.get("media_type", ""))
    if not data or not media_type.startswith("image/"):
        return "[image, not readable]"
    return {"kind": "binary", "media_type": media_type, "data": base64.urlsafe_b64encode(data).decode()}
