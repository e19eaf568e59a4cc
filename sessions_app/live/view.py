"""One socket's view of one session: finished rows from a bounded queue, the growing row as it is now."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.frames import ChatStream, ChatThinking, ChatToolCall, ChatToolResult, Reload
from core.texts import encodable
from sessions_app.live.items import Item
from sessions_app.logs.records import GrowingRow
from sessions_app.logs.shown import shown

QUEUE_LENGTH = 1_000
MERGE_SEC = 1 / 30

Send = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class _Sent:
    """What the client has of the growing row: by block its text, or how far a tool call was told."""

    row: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    calls: dict[int, str] = field(default_factory=dict)


class View:
    """``put``, ``tell`` and ``grow`` never wait; ``run`` sends.

    A view that can't keep up is ended, and comes back with the number of the last row it has: so it loses
    none of them.
    """

    def __init__(self, session_id: str, *, html: bool) -> None:
        self.session_id = session_id
        self.html = html
        self._ended: Literal["", "too_slow", "rewritten"] = ""
        self._queue: deque[str] = deque()
        self._room = QUEUE_LENGTH
        self._growing: GrowingRow | None = None
        self._sent = _Sent()
        self._wake = asyncio.Event()

    def put(self, item: Item) -> None:
        if self._growing is not None and self._growing.id == item.retires:
            self._growing = None
        self.tell(item.laid_out if self.html else item.plain)

    def begin(self, missed: Sequence[Item], then: Sequence[str]) -> None:
        """What comes first, however much it is: the queue's bound is for what comes live."""
        first = [*(item.laid_out if self.html else item.plain for item in missed), *then]
        self._queue.extendleft(reversed(first))
        self._room = QUEUE_LENGTH + len(first)
        self._wake.set()

    def tell(self, text: str) -> None:
        if len(self._queue) >= self._room:
            self.end("too_slow")
        else:
            self._queue.append(text)
        self._wake.set()

    def end(self, why: Literal["too_slow", "rewritten"]) -> None:
        self._ended = self._ended or why
        self._wake.set()

    def grow(self, row: GrowingRow | None) -> None:
        """What streams now; whatever wasn't sent of the state before it is left out."""
        if row is not self._growing:
            self._growing = row
            self._wake.set()

    async def run(self, send: Send) -> None:
        """Send until the view has ended, and then say so. At most one frame of streamed text in MERGE_SEC."""
        while not self._ended:
            await self._wake.wait()
            self._wake.clear()
            while self._queue and not self._ended:
                await send(self._queue.popleft())
            if self._ended:
                break
            streamed = False
            for text, is_stream in self._next_frames():
                await send(text)
                streamed = streamed or is_stream
            if streamed:
                self._wake.set()
                await asyncio.sleep(MERGE_SEC)
        await send(Reload(reason=self._ended, session=self.session_id).to_text())

    def _next_frames(self) -> Iterator[tuple[str, bool]]:
        """What is new of the growing row, up to and with the first piece of text."""
        row = self._growing
        if row is None:
            return
        if self._sent.row != row.id:
            self._sent = _Sent(row.id)
        for index, block in enumerate(row.blocks):
            if block.get("type") == "tool_call":
                yield from ((text, False) for text in self._tool_frames(row.id, index, block))
                continue
            text = self._text_frame(row.id, index, block)
            if text:
                yield text, True
                return

    def _text_frame(self, row_id: str, index: int, block: dict[str, Any]) -> str:
        text = encodable(str(block.get("text", "")))
        known = self._sent.texts.get(index)
        if known == text:
            return ""
        at = len(known) if known and text.startswith(known) else 0
        self._sent.texts[index] = text
        make = ChatThinking if block.get("type") == "thinking" else ChatStream
        return make(session=self.session_id, row=row_id, block=index, at=at, text=text[at:]).to_text()

    def _tool_frames(self, row_id: str, index: int, block: dict[str, Any]) -> Iterator[str]:
        call_id = encodable(str(block.get("call_id", "")))
        if index not in self._sent.calls:
            self._sent.calls[index] = "called"
            yield ChatToolCall(
                session=self.session_id,
                row=row_id,
                block=index,
                call_id=call_id,
                tool=encodable(str(block.get("tool", ""))),
                arguments=shown(block.get("arguments")),
            ).to_text()
        result = block.get("result")
        if isinstance(result, dict) and self._sent.calls[index] != "answered":
            self._sent.calls[index] = "answered"
            yield ChatToolResult(
                session=self.session_id,
                row=row_id,
                block=index,
                call_id=call_id,
                text=encodable(str(result.get("text", ""))),
                is_error=bool(result.get("is_error")),
                interrupted=bool(result.get("interrupted")),
            ).to_text()
