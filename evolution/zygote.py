"""A warm process that agent children are forked from: it has imported the model library, and nothing else.

It forks from the wrapper before Django is set up and before any connection exists, and imports while the
wrapper sets up. It ends, with the child in flight, when its wrapper does, however that happens. No Django.

The wrapper's side; what the forked process does is in ``zygote_process``, which only that process needs.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass

GRACE_SEC = 10.0
CHILD = "evolution.child:run"


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
        leave_after(lambda: _serve(theirs, life_read, child))
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


def _serve(connection: socket.socket, life: int, child: str) -> None:
    from evolution import zygote_process

    zygote_process.serve(connection, life, child)


def leave_after(work: Callable[[], None]) -> None:
    """Run ``work`` and end the process without running anything that belongs to the process it came from."""
    code = 0
    try:
        work()
    except BaseException:  # noqa: BLE001 - the last frame of a forked process: report it and leave
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stderr.flush()
    os._exit(code)
