"""Processes: who one is, whether it still lives, ending it, and starting one that outlives us.

``kill(pid, 0)`` succeeds on a zombie and pids are reused, so an identity is boot id, pid and start time.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any


@cache
def host_name() -> str:
    """The name this machine has in rows and lock files (``HALO_HOST`` overrides it)."""
    return os.environ.get("HALO_HOST") or platform.node()


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of one boot of one host; ``start_time`` is in clock ticks since that boot."""

    host: str
    boot_id: str
    pid: int
    start_time: int

    @classmethod
    def current(cls) -> ProcessIdentity:
        identity = cls.of(os.getpid())
        if identity is None:  # pragma: no cover - /proc is there whenever we run
            raise RuntimeError("/proc does not list this process; Halo needs a mounted /proc.")
        return identity

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The identity of a live process of this host; None when there is none, or only a zombie."""
        start_time = _start_time(pid)
        return None if start_time is None else cls(host_name(), boot_id(), pid, start_time)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProcessIdentity:
        return cls(str(value["host"]), str(value["boot_id"]), int(value["pid"]), int(value["start_time"]))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_local(self) -> bool:
        return self.host == host_name()

    def is_alive(self) -> bool:
        """Whether this very process runs on this host; for another host's process the answer is no."""
        return self.is_local and self.boot_id == boot_id() and _start_time(self.pid) == self.start_time

    def send(self, signal_number: int) -> bool:
        """Signal this very process; False when it is gone, or another user's. A reused pid is never hit."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, signal_number)
        except (ProcessLookupError, PermissionError):
            return False
        finally:
            os.close(descriptor)
        return True


def _start_time(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    state, start_time = fields[0], fields[19]
    return None if state in (b"Z", b"X") else int(start_time)


def spawn_detached(
    arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
) -> None:
    """Start a process in its own session that belongs to nobody and leaves no zombie.

    ``setsid --fork`` does the double fork; a fork of our own would run Python in a copy of a threaded
    process. No descriptors are inherited; standard input is empty, both outputs are appended to ``log``.
    The caller learns the pid from what the process itself writes. Raises OSError when it can't be started.
    """
    if not os.access(arguments[0], os.X_OK):
        raise OSError(errno.ENOENT, "can't be executed", arguments[0])
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        subprocess.run(
            [_setsid(), "--fork", *arguments],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=True,
        )


@cache
def _setsid() -> str:
    program = shutil.which("setsid")
    if program is None:
        raise OSError(errno.ENOENT, "setsid is missing; it is part of util-linux", "setsid")
    return program
