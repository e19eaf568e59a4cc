"""The events of one turn, written into both logs as they come.

One assistant row stands for one model call with its tool calls and their results. It has its id from the
first delta on; ``inflight`` records carry what changed, the final ``add`` retires it (rule 2).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from agents import events
from core import clock
from sessions_app.logs import records as make
from sessions_app.logs.kept_rows import last_let_go, rows_after
from sessions_app.logs.records import GrowingRow, Message, Record
from sessions_app.logs.reply_row import ReplyRow
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
        self._reply: ReplyRow | None = None
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

    def _of(self, call: int) -> ReplyRow:
        if self._reply is None or self._reply.call != call:
            self._close("completed")
            self._reply = ReplyRow(call)
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
        earlier, self.rows = self.rows, rows_after(messages, self._known, self.rows)
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


def _now() -> str:
    return clock.stamp(clock.now())
