"""A command's output as far as a cap lets it. Runs on linked machines too, on Python 3.9."""

from __future__ import annotations


class CappedOutput:
    """Output up to a cap: its beginning, and in a window that moves along, its end."""

    def __init__(self, cap: int) -> None:
        self._tail_room = cap // 4
        self._head_room = cap - self._tail_room
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped = 0

    def add(self, piece: bytes) -> None:
        room = self._head_room - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:] if room < len(piece) else b""
        if len(self._tail) > 2 * self._tail_room:
            self._trim()

    def _trim(self) -> None:
        surplus = len(self._tail) - self._tail_room
        if surplus > 0:
            del self._tail[:surplus]
            self.dropped += surplus

    def text(self) -> str:
        self._trim()
        gap = b"\n[...]\n" if self.dropped else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode("utf-8", "replace")
