"""A WebSocket client that does little but receive, so that 500 of them fit beside the server on two cores."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import time
from typing import Any


class SocketClient:
    """``arrivals`` holds (event id, ``time.perf_counter()``) of every event frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.arrivals: list[tuple[int, float]] = []

    @classmethod
    async def connect(cls, *, port: int, cookie: str) -> SocketClient:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            "GET /ws/ HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Origin: http://127.0.0.1:{port}",
            f"Cookie: {cookie}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        )
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise RuntimeError(f"The socket was refused: {head!r}")
        return cls(reader, writer)

    async def subscribe(self, *topics: str, since: int | None = None) -> None:
        """Returns when what was missed has arrived."""
        self.send({"type": "subscribe", "topics": list(topics), "since": since})
        while await self.receive() != "subscribed":
            pass

    def send(self, frame: dict[str, Any]) -> None:
        self._write(0x81, json.dumps(frame).encode())

    async def frame(self) -> dict[str, Any]:
        """The next frame, whatever it is."""
        return await self._frame()

    async def receive(self) -> str:
        """The type of the next frame."""
        frame = await self._frame()
        if frame["type"] == "event":
            self.arrivals.append((frame["id"], time.perf_counter()))
        return str(frame["type"])

    async def receive_until(self, event_id: int) -> None:
        while not self.arrivals or self.arrivals[-1][0] != event_id:
            if (kind := await self.receive()) != "event":
                raise RuntimeError(f"Not an event: {kind}")

    def close(self) -> None:
        self._writer.close()

    def _write(self, kind: int, data: bytes) -> None:
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0xFE, len(data))
        self._writer.write(struct.pack("!B", kind) + size + mask + masked)

    async def _frame(self) -> dict[str, Any]:
        """The next text frame; a server masks nothing and what we read is never fragmented."""
        while True:
            kind, length = struct.unpack("!BB", await self._reader.readexactly(2))
            if length == 126:
                (length,) = struct.unpack("!H", await self._reader.readexactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", await self._reader.readexactly(8))
            data = await self._reader.readexactly(length)
            if kind == 0x81:
                value: dict[str, Any] = json.loads(data)
                return value
            if kind == 0x89:
                self._write(0x8A, data)  # who doesn't answer a ping is taken for gone
            if kind == 0x88:
                raise ConnectionError(f"The server closed the socket: {data!r}")
