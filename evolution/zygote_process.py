"""What the zygote does once it is forked: import, then fork a child for each request, wait for its end. No Django."""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
from collections.abc import Callable
from functools import partial
from typing import Protocol

from core import collector
from evolution import wire
from evolution.child_process import run_forked
from evolution.environment import Keys, take_secrets
from evolution.phases.context import ChildSpec
from evolution.zygote import GRACE_SEC, leave_after


class ChildMain(Protocol):
    """Runs in the child; its streams are the child's own."""

    def __call__(self, spec: ChildSpec, *, keys: Keys) -> wire.Answer: ...


def serve(connection: socket.socket, life: int, child: str) -> None:
    """Answer requests until the wrapper is gone. ``child`` is imported here and run by every child."""
    keys = take_secrets()
    module, function = child.split(":")
    with collector.at_rest():
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
        leave_after(lambda: run_forked(spec, child_main, life=life, result=result))
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
