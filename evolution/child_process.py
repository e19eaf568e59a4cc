"""The inside of a forked child: its streams, its bond to the wrapper's life, its answer. No Django."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from core.atomic import write_all
from evolution import wire
from evolution.phases.context import ChildSpec

GRACE_SEC = 10.0


def run_forked(
    spec: ChildSpec, child_main: Callable[[ChildSpec], wire.Answer], *, life: int, result: int
) -> None:
    """Become the child: own session, brief on standard input, output appended to the log; then work."""
    os.setsid()
    _connect_streams(spec)
    threading.Thread(target=_end_with_wrapper, args=(life,), name="life", daemon=True).start()
    answer = child_main(spec)
    write_all(result, wire.encode_answer(answer))
    sys.stdout.flush()
    os._exit(answer.exit_code)


def _connect_streams(spec: ChildSpec) -> None:
    brief = os.memfd_create("brief")
    write_all(brief, spec.brief.encode())
    os.lseek(brief, 0, os.SEEK_SET)
    spec.log.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
    for source, target in ((brief, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(brief)
    os.close(log)
    # Streams of our own: no buffer of the process we were forked from, and UTF-8 whatever the locale.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, not a path
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # noqa: SIM115


def _end_with_wrapper(life: int) -> None:
    """Wait for the end of the pipe that only the wrapper holds, then end this process."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SEC)
    os._exit(1)
