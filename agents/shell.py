"""Running a command for an agent: in the view's own way, its output in order, killed with all it started.

Linked machines run this module too, on Python 3.9.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agents import environment, sandbox
from agents.capped_output import CappedOutput
from agents.process_group import group_lives, signal_group
from agents.sandbox_limits import LOOK_SEC, Usage
from agents.tools.context import ToolContext, ToolError
from agents.view import View

_AFTER_KILL_SEC = 2.0
_PIECE = 65_536

Ending = Literal["exit", "timeout", "abort", "excess"]


@dataclass(frozen=True)
class Outcome:
    """``exit_code`` is negative for a signal. ``dropped`` bytes of output lay beyond the cap.

    ``excess``: what a sandboxed command used too much of, so that it was killed.
    """

    text: str
    exit_code: int
    ended_by: Ending
    dropped: int = 0
    goes_on: bool = False
    excess: str = ""


@lru_cache(maxsize=1)
def interpreter() -> str:
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def ripgrep(view: View) -> str | None:
    """ripgrep's path when this view can run it; file tools of a view without a shell search by hand."""
    program = shutil.which("rg")
    if program is None or view.shell == "none":
        return None
    if view.shell == "sandbox" and (sandbox.why_unavailable() or not program.startswith("/usr/")):
        return None
    return program


def run(
    context: ToolContext, arguments: list[str], *, folder: Path | None = None, timeout: float | None = None
) -> Outcome:
    """Run to the end, the timeout (seconds) or the abort. Raises ToolError when it may not or can't start."""
    view = context.view
    where = folder or view.folder
    if view.shell == "none":
        raise ToolError("This session has no shell.")
    if view.shell == "sandbox":
        reason = sandbox.why_unavailable()
        if reason:
            raise ToolError(f"Commands need the sandbox at this level. {reason} {sandbox.HOW_TO_GET_IT}")
        process = _start(
            sandbox.wrapped(view, arguments, folder=where, limits=context.limits),
            folder=Path("/"),
            env=environment.sandbox_environment() | _mark(context),
        )
    else:
        inherited = environment.host_environment(context.secret_env)
        process = _start(arguments, folder=where, env=inherited | _mark(context))
    outcome = _Watch(context, process, timeout or context.limits.shell_timeout_sec).to_the_end()
    if view.shell == "sandbox" and outcome.exit_code != 0 and outcome.text.startswith("bwrap: "):
        raise ToolError(f"The sandbox could not be started: {outcome.text[7:].strip()}")
    return outcome


def _mark(context: ToolContext) -> dict[str, str]:
    return {"HALO_SESSION": context.session_id} if context.session_id else {}


def _start(arguments: list[str], *, folder: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            arguments,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # one pipe for both keeps their order
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"The command could not be started in {folder}: {error.strerror}.") from None


class _Watch:
    """One command from its start to its end; owns the pipe and the process group."""

    def __init__(self, context: ToolContext, process: subprocess.Popen[bytes], timeout: float) -> None:
        self._context = context
        self._process = process
        self._deadline = time.monotonic() + timeout
        self._output = CappedOutput(context.limits.shell_output_bytes)
        self._at_end = False
        sandboxed = context.view.shell == "sandbox"
        self._usage = Usage(process.pid, context.limits) if sandboxed else None
        self._excess = ""

    def to_the_end(self) -> Outcome:
        assert self._process.stdout is not None  # noqa: S101 - started with a pipe
        pipe = self._process.stdout.fileno()
        os.set_blocking(pipe, False)
        exited = os.pidfd_open(self._process.pid)
        woken, waker = os.pipe()
        take_off = self._context.on_abort(lambda: _wake(waker))
        try:
            ended_by = self._watch(pipe, exited, woken)
            if ended_by == "excess":
                self._kill_at_once(pipe)
            elif ended_by != "exit":
                self._kill(pipe)
            elif self._context.view.shell == "sandbox":
                self._drain(
                    pipe, _after_kill_sec
                )  # nothing outlives the sandbox; its last one is just ending
            self._read(pipe)
            return Outcome(
                text=self._output.text(),
                exit_code=self._process.wait(),
                ended_by=ended_by,
                dropped=self._output.dropped,
                goes_on=not self._at_end,
                excess=self._excess,
            )
        finally:
            take_off()
            for descriptor in (exited, woken, waker):
                os.close(descriptor)
            self._process.stdout.close()

    def _watch(self, pipe: int, exited: int, woken: int) -> Ending:
        with selectors.DefaultSelector() as selector:
            for descriptor in (pipe, exited, woken):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    return "timeout"
                if self._usage is not None:
                    left = min(left, LOOK_SEC)
                    if excess := self._usage.excess():
                        self._excess = excess
                        return "excess"
                ready = {key.fd for key, _ in selector.select(left)}
                if woken in ready:
                    return "abort"
                if pipe in ready:
                    self._read(pipe, once=True)
                    if self._at_end:
                        selector.unregister(pipe)
                elif exited in ready:
                    return "exit"

    def _read(self, pipe: int, *, once: bool = False) -> None:
        while not self._at_end:
            try:
                piece = os.read(pipe, _PIECE)
            except BlockingIOError:
                return
            if not piece:
                self._at_end = True
            self._output.add(piece)
            if once:
                return

    def _kill(self, pipe: int) -> None:
        """SIGTERM to the group, SIGKILL after the grace. The leader is reaped last, its id stays ours."""
        group = self._process.pid
        signal_group(group, signal.SIGTERM)
        self._drain(pipe, self._context.kill_grace_sec, until_gone=group)
        self._kill_at_once(pipe)

    def _kill_at_once(self, pipe: int) -> None:
        signal_group(self._process.pid, signal.SIGKILL)
        self._drain(pipe, _after_kill_sec)

    def _drain(self, pipe: int, seconds: Callable[[], float], until_gone: int | None = None) -> None:
        """Read on until the pipe's end (or, given a group, until none of it lives), at most ``seconds()``."""
        started = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while time.monotonic() < started + seconds():
                if until_gone is not None and not group_lives(until_gone):
                    return
                if self._at_end and until_gone is None:
                    return
                if self._at_end:
                    time.sleep(0.02)
                elif selector.select(0.02):
                    self._read(pipe, once=True)


def _after_kill_sec() -> float:
    return _AFTER_KILL_SEC


def _wake(waker: int) -> None:
    os.write(waker, b"x")
