"""A scripted model that streams piece by piece, as fast as a test hands the pieces out."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

PATIENCE_SEC = 30

Piece = str | DeltaToolCalls | Exception


class Streaming:
    """``say`` hands out a piece of the call that runs, ``end`` ends it, ``fail`` lets it fail."""

    def __init__(self) -> None:
        self._pieces: queue.Queue[Piece | None] = queue.Queue()
        self.calls = 0

    def say(self, *pieces: Piece) -> None:
        for piece in pieces:
            self._pieces.put(piece)

    def end(self) -> None:
        self._pieces.put(None)

    async def _stream(
        self, _messages: list[ModelMessage], _info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        self.calls += 1
        while (piece := await asyncio.to_thread(self._pieces.get, timeout=PATIENCE_SEC)) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Streaming:
        model = FunctionModel(stream_function=self._stream)
        monkeypatch.setattr("agents.providers.build_model", lambda _choice: model)
        return self
