"""Having a child work, as the wrapper sees it: its time, its silence, its end. No Django."""

from __future__ import annotations

import select
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from core import clock
from core.processes import ProcessIdentity
from evolution import wire
from evolution.errors import ClaimLost
from evolution.phases.context import ChildResult, ChildSpec
from evolution.zygote import GRACE_SEC, Zygote

_POLL_SEC = 0.25


@dataclass(slots=True)
class Children:
    """Runs one child at a time through ``zygote``. ``check`` raises ClaimLost once the row is lost.

    ``account`` is told the tokens of every child that had something to say, also those of a lost row.
    """

    zygote: Zygote
    check: Callable[[], None]
    elapsed: Callable[[], float] = clock.suspended_seconds
    grace_sec: float = GRACE_SEC
    account: Callable[[tuple[int, int]], None] = lambda spent: None
    _current: ProcessIdentity | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def run(self, spec: ChildSpec) -> ChildResult:
        """Block until the child has ended. Raises ClaimLost, with the child ended, or PeerGone."""
        self.check()
        wire.send(self.zygote.connection, wire.StartChild(spec))
        started: wire.ChildStarted = wire.receive(self.zygote.connection)
        with self._guard:
            self._current = ProcessIdentity.of(started.pid)
        try:
            ended_by = self._watch(spec)
            answer: wire.Answer = wire.receive(self.zygote.connection)
        finally:
            with self._guard:
                self._current = None
        self.account(answer.spent)
        self.check()
        return ChildResult(answer.exit_code, answer.text, ended_by, answer.error)

    def abort(self) -> None:
        """End the child in flight, from any thread: SIGTERM, after the grace SIGKILL."""
        with self._guard:
            child = self._current
        if child is None or not child.send(signal.SIGTERM):
            return
        kill = threading.Timer(self.grace_sec, child.send, [signal.SIGKILL])
        kill.daemon = True
        kill.start()

    def _watch(self, spec: ChildSpec) -> Literal["exit", "timeout", "silence"]:
        """Return when the answer can be read; the child was ended first if it took or was silent too long."""
        begun = last_output = self.elapsed()
        size = _size(spec.log)
        while not self._has_answer(_POLL_SEC):
            self._end_if_lost()
            now, size_now = self.elapsed(), _size(spec.log)
            if size_now != size:
                size, last_output = size_now, now
            if now - begun > spec.timeout_sec:
                return self._end("timeout")
            if now - last_output > spec.silence_sec:
                return self._end("silence")
        return "exit"

    def _end_if_lost(self) -> None:
        """A claim lost while the child was being started is noticed here; ``abort`` came too early for it."""
        try:
            self.check()
        except ClaimLost:
            self._end("timeout")
            wire.receive(self.zygote.connection)
            raise

    def _end(self, why: Literal["timeout", "silence"]) -> Literal["timeout", "silence"]:
        self.abort()
        while not self._has_answer(_POLL_SEC):
            pass
        return why

    def _has_answer(self, wait_sec: float) -> bool:
        return bool(select.select([self.zygote.connection], [], [], wait_sec)[0])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
