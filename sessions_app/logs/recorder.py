"""The events of one turn, written into both logs as they come.

One assistant row stands for one model call with its tool calls and their results. It has its id from the
first delta on; ``inflight`` records carry what changed, the final ``add`` retires it (rule 2).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from agents import events
from agents.history import kept_behind, persons_parts
from core import clock
from sessions_app.logs import records as make
from sessions_app.logs.agreement import closed_blocks
from sessions_app.logs.records import GrowingRow, Message, Record
from sessions_app.logs.session_log import SessionLog

STREAM_SAVE_SECONDS = 0.5


class TurnRecorder:
    """``history`` is the list that the loop extends; ``rows`` names, for each message, the rows that show it.

    Hand ``record`` to ``Turn.emit``. It appends without fsync unless the setting says always, so it may run
    on the event loop; call ``log.end_turn()`` off the loop afterwards. Raises OSError and LeaseLostError from
    the log: a turn whose save points can't be written has to end.
    """

    def __init__(
        self,
        log: SessionLog,
        history: list[Message],
        rows: Sequence[Sequence[str]],
        *,
        ui_chars: int = 65_536,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = log
        self.history = history
        self.rows: list[Sequence[str]] = list(rows)
        self._known = list(history)
        self._ui_chars = ui_chars
        self._monotonic = monotonic
        self._saved_at = monotonic()
        self._reply: _Reply | None = None
        self.compacted = False
        log.memory = self._memory

    def record(self, event: events.AgentEvent) -> None:
        match event:
            case events.StreamDelta(call=call, text=text):
                self._delta(call, "text", text)
            case events.ThinkingDelta(call=call, text=text):
                self._delta(call, "thinking", text)
            case events.Stream(call=call, text=text):
                self._of(call).finish_block("text", text)
            case events.Thinking(call=call, text=text):
                self._of(call).finish_block("thinking", text)
            case events.ToolCall():
                self._of(event.call).tool_call(event)
            case events.ToolResult():
                self._result(event)
            case events.CallDiscarded(call=call):
                self._discard(call)
            case events.SavePoint():
                self._save_point(event)
            case events.HistoryReplaced(messages=messages, compacted=compacted):
                self.compacted |= compacted
                self._replace(messages, compacted)
            case events.SystemNote(text=text):
                self._system("note", text)
            case events.TurnError(text=text):
                self._system("error", text)
            case events.Complete(status=status):
                self._close(status)

    def growing(self) -> GrowingRow | None:
        """The row of the call in flight, newer than the log's by what the next save will hold. Any thread."""
        reply = self._reply
        return reply.so_far() if reply else None

    def _of(self, call: int) -> _Reply:
        if self._reply is None or self._reply.call != call:
            self._close("completed")
            self._reply = _Reply(call)
        return self._reply

    def _delta(self, call: int, kind: str, text: str) -> None:
        self._of(call).extend_block(kind, text)
        if self._monotonic() - self._saved_at >= STREAM_SAVE_SECONDS:
            self._save()

    def _result(self, event: events.ToolResult) -> None:
        if self._reply is not None and self._reply.tool_result(event, self._ui_chars):
            self._save()

    def _discard(self, call: int) -> None:
        reply = self._reply
        if reply is None or reply.call != call:
            return
        self._reply = None
        if reply.written:
            self.log.append(ui=[make.drop(reply.row_id)])

    def _save_point(self, event: events.SavePoint) -> None:
        raw: list[Record] = []
        shown = (self._reply.row_id,) if self._reply else ()
        for message in event.messages:
            raw.append(make.message(message, shown))
            self.rows.append(shown)
            self._known.append(message)
        if event.part is not None and event.of is not None:
            raw.append(make.part(event.of, event.part))
            self._known[event.of] = self.history[event.of]
        self._save(raw)

    def _save(self, raw: Sequence[Record] = ()) -> None:
        ui = self._reply.changes() if self._reply else []
        if raw or ui:
            self.log.append(ui=ui, raw=raw)
        self._saved_at = self._monotonic()

    def _replace(self, messages: Sequence[Message], compacted: bool) -> None:
        """Messages and parts that stayed the same objects keep their rows, wherever they stand now."""
        shown = {id(message): rows for message, rows in zip(self._known, self.rows, strict=False)}
        calls = _rows_by_call(self._known, self.rows)
        spoken = _rows_by_prompt(self._known, self.rows)
        earlier = self.rows
        self.rows = [
            shown.get(id(message)) or _rows_of_results(message, calls) or _rows_of_prompts(message, spoken)
            for message in messages
        ]
        covers = last_let_go(self._known, earlier, self.rows) if compacted else ""
        self._known = list(messages)
        self.log.replace_history(messages, self.rows, covers=covers)

    def _system(self, kind: str, text: str) -> None:
        row = make.system_row(row_id=make.new_row_id(), at=_now(), kind=kind, text=text)
        self.log.append(ui=[make.add(row)])

    def _close(self, status: str) -> None:
        """The final row of the call in flight, if there is one."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        shown = {"completed": "done", "interrupted": "done", "aborted": "interrupted"}.get(status, "failed")
        self.log.append(ui=[make.add(reply.row(shown))])

    def _memory(self) -> tuple[list[Message], list[Sequence[str]]]:
        missing = len(self.history) - len(self.rows)
        return list(self.history), [*self.rows, *([()] * missing)][: len(self.history)]


class _Reply:
    """The row of the call in flight; ``written`` once a record of it is in the log."""

    def __init__(self, call: int) -> None:
        self.call = call
        self.row_id = make.new_row_id()
        self.at = _now()
        self.written = False
        self._blocks: list[dict[str, Any]] = []
        self._finished: set[int] = set()
        self._changed: set[int] = set()

    def extend_block(self, kind: str, text: str) -> None:
        index = self._open_block(kind)
        block = self._blocks[index]
        self._set(index, {**block, "text": block["text"] + text})

    def finish_block(self, kind: str, text: str) -> None:
        index = self._open_block(kind)
        self._set(index, {"type": kind, "text": text})
        self._finished.add(index)

    def tool_call(self, event: events.ToolCall) -> None:
        self._append(
            {
                "type": "tool_call",
                "call_id": event.call_id,
                "tool": event.tool,
                "arguments": event.arguments,
            }
        )

    def tool_result(self, event: events.ToolResult, ui_chars: int) -> bool:
        for index, block in enumerate(self._blocks):
            if block.get("call_id") == event.call_id:
                result = {"text": _cut(event.text, ui_chars), "is_error": event.is_error}
                if event.interrupted:
                    result["interrupted"] = True
                self._set(index, {**block, "result": result})
                return True
        return False

    def changes(self) -> list[Record]:
        if not self._changed:
            return []
        blocks = {str(index): self._blocks[index] for index in sorted(self._changed)}
        self._changed.clear()
        self.written = True
        return [make.inflight(self.row_id, self.at, blocks)]

    def so_far(self) -> GrowingRow:
        return GrowingRow(self.row_id, self.at, tuple(self._blocks))

    def row(self, status: str) -> make.Row:
        return make.assistant_row(
            row_id=self.row_id, at=self.at, blocks=closed_blocks(self._blocks, {}), status=status
        )

    def _open_block(self, kind: str) -> int:
        """The last block when it is of this kind and unfinished, else a new one."""
        last = len(self._blocks) - 1
        if last >= 0 and last not in self._finished and self._blocks[last]["type"] == kind:
            return last
        return self._append({"type": kind, "text": ""})

    def _append(self, block: dict[str, Any]) -> int:
        self._blocks.append(block)
        self._changed.add(len(self._blocks) - 1)
        return len(self._blocks) - 1

    def _set(self, index: int, block: dict[str, Any]) -> None:
        self._blocks[index] = block
        self._changed.add(index)


def _rows_by_call(history: Sequence[Message], rows: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    return {
        part["tool_call_id"]: shown
        for message, shown in zip(history, rows, strict=False)
        for part in message["parts"]
        if part.get("tool_call_id")
    }


def _rows_of_results(message: Message, calls: dict[str, Sequence[str]]) -> Sequence[str]:
    """A message that repair made anew is shown by the row of the calls it answers."""
    for part in message["parts"]:
        if part.get("tool_call_id") in calls:
            return calls[part["tool_call_id"]]
    return ()


def _rows_by_prompt(history: Sequence[Message], rows: Sequence[Sequence[str]]) -> dict[int, str]:
    """The row of each part that somebody wrote, by the part's identity."""
    return {
        id(part): row_id
        for message, shown in zip(history, rows, strict=False)
        for part, row_id in zip(persons_parts(message), shown, strict=False)
    }


def last_let_go(
    messages: Sequence[Message], rows: Sequence[Sequence[str]], kept: Sequence[Sequence[str]]
) -> str:
    """Of the rows that showed ``messages`` the last that isn't among ``kept``; empty when all are."""
    still = {row_id for shown in kept for row_id in shown}
    older = kept_behind(messages[0]) if messages else 0
    in_order = [*rows[1 : 1 + older], *rows[:1], *rows[1 + older :]]  # a summary stands ahead of what it kept
    return next(
        (row_id for shown in reversed(in_order) for row_id in reversed(shown) if row_id not in still), ""
    )


def _rows_of_prompts(message: Message, spoken: dict[int, str]) -> Sequence[str]:
    """A summary takes over the rows of the messages that stand in it word for word."""
    return tuple(spoken[id(part)] for part in persons_parts(message) if id(part) in spoken)


def _cut(text: str, limit: int) -> str:
    return (
        text if len(text) <= limit else f"{text[:limit]}\n[{len(text) - limit} more characters not kept here]"
    )


def _now() -> str:
    return clock.stamp(clock.now())
