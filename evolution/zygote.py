"""A warm process that agent children are forked from: it has imported the model library, and nothing else.

It forks from the wrapper before Django is set up and before any connection exists, and imports while the
wrapper sets up. It ends, with the child in flight, when its wrapper does, however that happens. No Django.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from evolution import wire
from evolution.child_process import run_forked
from evolution.environment import Keys, take_secrets
from evolution.phases.context import ChildSpec

GRACE_SEC = 10.0
CHILD = "evolution.child:run"


class ChildMain(Protocol):
    """Runs in the child; its streams are the child's own."""

    def __call__(self, spec: ChildSpec, *, keys: Keys) -> wire.Answer: ...


@dataclass(frozen=True, slots=True)
class Zygote:
    """The wrapper's ends. ``life`` is held by the wrapper alone: children end at its end of file."""

    pid: int
    connection: socket.socket
    life: int

    def close(self) -> None:
        """End the zygote, and with it a child in flight; it is gone when this returns."""
        self.connection.close()
        os.close(self.life)
        os.waitpid(self.pid, 0)


_started: list[Zygote] = []


def start(child: str = CHILD) -> Zygote:
    """Fork the zygote; call it first of all. ``child`` names what every child runs, ``module:function``."""
    ours, theirs = socket.socketpair()
    life_read, life_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        os.close(life_write)
        _leave_after(lambda: _serve(theirs, life_read, child))
    theirs.close()
    os.close(life_read)
    zygote = Zygote(pid, ours, life_write)
    _started.append(zygote)
    return zygote


def started() -> Zygote:
    """The zygote that the command line forked for this process."""
    if not _started:
        raise RuntimeError("No zygote was forked; a wrapper is started as `halo evo_wrapper ...` only.")
    return _started[-1]


def _leave_after(work: Callable[[], None]) -> None:
    """Run ``work`` and end the process without running anything that belongs to the process it came from."""
    code = 0
    try:
        work()
    except BaseException:  # noqa: BLE001 - the last frame of a forked process: report it and leave
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _serve(connection: socket.socket, life: int, child: str) -> None:
    keys = take_secrets()
    module, function = child.split(":")
    child_main: ChildMain = getattr(importlib.import_module(module), function)
    gc.collect()
    gc.freeze()
    try:
        while True:
            request: wire.StartChild = wire.receive(connection)
            wire.send(connection, _run_child(connection, life, request.spec, partial(child_main, keys=keys)))
    except wire.PeerGone:
        return


def _run_child(
    connection: socket.socket, life: int, spec: ChildSpec, child_main: Callable[[ChildSpec], wire.Answer]
) -> wire.Answer:
    """Fork one child and wait for its end. Raises PeerGone after ending it when the wrapper is gone."""
    result = os.memfd_create("answer")
    pid = os.fork()
    if pid == 0:
        connection.close()
        _leave_after(lambda: run_forked(spec, child_main, life=life, result=result))
    try:
        wire.send(connection, wire.ChildStarted(pid))
        return _await_child(connection, pid, result)
    except wire.PeerGone:
        _end(pid)
        raise
    finally:
        os.close(result)


def _await_child(connection: socket.socket, pid: int, result: int) -> wire.Answer:
    descriptor = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([descriptor, connection.fileno()], [], [])
        if descriptor not in ready:
            raise wire.PeerGone  # while a child runs, the wrapper has nothing to say but its end
    finally:
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    data = os.pread(result, os.fstat(result).st_size, 0)
    if not data:
        how = f"was ended by signal {-code}" if code < 0 else f"left with exit code {code}"
        return wire.Answer(code or 1, error=f"The agent's process {how} without an answer.")
    return wire.decode_answer(data, exit_code=code)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    descriptor = os.pidfd_open(pid)
    try:
        if not select.select([descriptor], [], [], GRACE_SEC)[0]:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(descriptor)
    os.waitpid(pid, 0)
