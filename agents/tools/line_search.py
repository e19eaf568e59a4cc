"""Searching lines for a regular expression in a process of its own, which can be ended.

Python's expressions can take for ever over one line, and hold the whole interpreter meanwhile. The child gets
bytes and gives back lines: it opens no file. Run as a program it is that child. Python 3.9 too.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType

SEARCH_SEC = 20.0
"""What one search may spend in its expression altogether."""
START_SEC = 30.0
CHILD_CPU_SEC = 60
"""The kernel's limit: a child whose parent is gone doesn't run on."""
_LOOK_SEC = 0.1


class TakesTooLong(Exception):
    """The search was ended: its time was spent, or it was aborted."""


class LineSearch:
    """``with LineSearch(...) as search: search.lines(content)``: numbers and beginnings of the lines that match.

    ``complaint``: why the pattern is no expression, and then there is nothing to search. ``lines`` raises
    TakesTooLong, and so does the beginning.
    """

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool,
        line_chars: int,
        is_aborted: Callable[[], bool],
        seconds: float = SEARCH_SEC,
    ) -> None:
        self._head = {"pattern": pattern, "ignore_case": ignore_case, "line_chars": line_chars}
        self._is_aborted = is_aborted
        self._left = seconds

    def __enter__(self) -> LineSearch:
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(__file__)],  # noqa: PTH100 - no other import in the child
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
        )
        left, self._left = self._left, START_SEC
        self._write(json.dumps(self._head).encode())
        self.complaint: str = json.loads(self._read_line())
        self._left = left
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._child.kill()
        self._child.communicate()

    def lines(self, content: bytes, *, at_most: int) -> list[tuple[int, str]]:
        self._write(json.dumps(at_most).encode())
        self._write(content)
        return [(number, line) for number, line in json.loads(self._read_line())]

    def _write(self, data: bytes) -> None:
        assert self._child.stdin is not None  # noqa: S101 - started with a pipe
        try:
            self._child.stdin.write(len(data).to_bytes(8, "big") + data)
            self._child.stdin.flush()
        except BrokenPipeError:
            raise TakesTooLong from None

    def _read_line(self) -> bytes:
        assert self._child.stdout is not None  # noqa: S101 - started with a pipe
        descriptor = self._child.stdout.fileno()
        pieces: list[bytes] = []
        started = time.monotonic()
        while not pieces or not pieces[-1].endswith(b"\n"):
            spent = time.monotonic() - started
            if spent > self._left or self._is_aborted():
                raise TakesTooLong
            if not select.select([descriptor], [], [], _LOOK_SEC)[0]:
                continue
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                raise TakesTooLong
            pieces.append(piece)
        self._left -= time.monotonic() - started
        return b"".join(pieces)


def _child() -> None:
    import re
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (CHILD_CPU_SEC, CHILD_CPU_SEC))
    head = json.loads(_next() or b"{}")
    complaint = ""
    try:
        wanted = re.compile(head["pattern"], re.IGNORECASE if head["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        complaint = str(error) or "too large"
    _say(complaint)
    if complaint:
        return
    while (number := _next()) is not None:
        at_most, content = json.loads(number), _next() or b""
        found: list[tuple[int, str]] = []
        for place, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
            if len(found) >= at_most:
                break
            if wanted.search(line):
                found.append((place, line[: head["line_chars"]]))
        _say(found)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _next() -> bytes | None:
    """One length-prefixed piece of the input; None at its end."""
    head = sys.stdin.buffer.read(8)
    return sys.stdin.buffer.read(int.from_bytes(head, "big")) if len(head) == 8 else None


if __name__ == "__main__":
    _child()
