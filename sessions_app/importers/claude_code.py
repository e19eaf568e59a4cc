"""Claude Code session files (``~/.claude/projects/<folder>/<session>.jsonl``)."""

from __future__ import annotations

from datetime import UTC, datetime

from agents import history as wire
from core import clock
from sessions_app.importers.blocks import reply_part, result_part, said
from sessions_app.importers.building import Stamps, build, usable
from sessions_app.importers.claude_lines import Line, conversation, read_lines
from sessions_app.importers.imported import Imported, ImportFailed
from sessions_app.logs import records as make
from sessions_app.logs.agreement import plain_text
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
        self._stamps = Stamps()
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
        build(self.result, self._notes, last_line=lines[-1].number)
        return self.result

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
        parts = [
            part for block in line.blocks if (part := reply_part(block, self._tools, self.result.left_out))
        ]
        identifier = line.reply
        if identifier and identifier in self._reply_ids:
            self._reply_ids[identifier]["parts"].extend(parts)
            return
        message = wire.reply_message(parts, timestamp=_moment(line, self._stamps.next_moment()).isoformat())
        if isinstance(line.message.get("model"), str):
            message["model_name"] = line.message["model"]
        if identifier:
            self._reply_ids[identifier] = message
        self.result.messages.append(message)

    def _user_line(self, line: Line) -> None:
        if line.value.get("isMeta"):
            self.result.left_out["line the program wrote for itself (meta)"] += 1
            return
        results = [
            result_part(block, self._tools) for block in line.blocks if block.get("type") == "tool_result"
        ]
        found = [item for block in line.blocks if block.get("type") != "tool_result" for item in said(block)]
        parts = results
        if line.value.get("isCompactSummary"):
            self._note(line, "note", plain_text(found))
            if len(self.result.messages):
                return
        if found:
            moment = _moment(line, self._stamps.next_moment())
            parts = [*results, *self._stamps.prompt_parts(found, moment)]
        if parts:
            self.result.messages.append({"kind": "request", "parts": parts})

    def _note(self, line: Line, kind: str, text: str) -> None:
        at = clock.stamp(_moment(line, self._stamps.next_moment()))
        row = make.system_row(row_id=make.new_row_id(), at=at, kind=kind, text=text)
        self._notes.append((len(self.result.messages), row))


def _moment(line: Line, otherwise: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(str(line.value.get("timestamp")))
    except ValueError:
        return otherwise
    if not usable(moment):
        return otherwise
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
