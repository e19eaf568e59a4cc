"""The ui row of a model call in flight: its blocks as they come, and what of them isn't saved yet."""

from __future__ import annotations

from typing import Any

from agents import events
from core import clock
from sessions_app.logs import records as make
from sessions_app.logs.agreement import closed_blocks
from sessions_app.logs.records import GrowingRow, Record


class ReplyRow:
    """The row of the call in flight; ``written`` once a record of it is in the log."""

    def __init__(self, call: int) -> None:
        self.call = call
        self.row_id = make.new_row_id()
        self.at = clock.stamp(clock.now())
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


def _cut(text: str, limit: int) -> str:
    return (
        text if len(text) <= limit else f"{text[:limit]}\n[{len(text) - limit} more characters not kept here]"
    )
