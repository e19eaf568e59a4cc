"""The workspace's lock, ``.halo/evo/publish.lock``: one publisher, or any number of loaders.

``flock`` on a file that is never replaced, so the kernel lets go when its holder dies, however it dies. The
exclusive holder writes who it is into the file; shared holders don't (there may be many), ``/proc/locks``
names them. Locks are never relied on across hosts: a file that names another host counts as held by it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core import clock, folders, safe_json
from core.paths import EvolutionPaths
from core.processes import ProcessIdentity

WAIT_SEC = 10.0
_POLL_SEC = 0.02
_DEATH_SEC = 10.0  # a killed process lets go when its last system call returns
_MAX_BYTES = 4096


class LockHeld(Exception):
    """Someone else holds the workspace's lock: ``lock_held:<pid>`` (pid 0: it can't be learned)."""

    def __init__(self, pid: int, host: str) -> None:
        super().__init__(
            f"The workspace's publish lock is held by process {pid} on {host}. Try again in a moment; if "
            "that machine is gone for good, move the workspace here (`halo workspace move --host`)."
        )
        self.pid = pid
        self.host = host

    @property
    def reason(self) -> str:
        return f"lock_held:{self.pid}"


@dataclass(frozen=True, slots=True)
class LockOwner:
    """Who holds the exclusive side: a process, for one attempt of one row."""

    kind: Literal["apply", "rollback"]
    row_id: str
    attempt: int
    process: ProcessIdentity

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LockOwner:
        kind: Literal["apply", "rollback"] = "rollback" if value["kind"] == "rollback" else "apply"
        process = ProcessIdentity.from_json(value["process"])
        return cls(kind, str(value["row_id"]), int(value["attempt"]), process)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "row_id": self.row_id,
            "attempt": self.attempt,
            "process": self.process.to_json(),
        }


@contextmanager
def exclusive(
    paths: EvolutionPaths,
    *,
    owner: LockOwner,
    may_end_holder: Callable[[LockOwner], bool],
    wait_sec: float = WAIT_SEC,
) -> Iterator[None]:
    """Hold the workspace against every other publisher and loader.

    After ``wait_sec`` a live holder of this host for which ``may_end_holder`` says yes (its claim is no
    longer its row's) is ended by SIGKILL. Raises LockHeld when the lock stays held, and at once when the
    file names a holder of another host; FileNotFoundError when the workspace's ``.halo`` is gone.
    """
    folders.make_below(paths.root.parent, paths.root)
    descriptor = _acquire(paths.lock_file, fcntl.LOCK_EX, wait_sec=wait_sec, may_end_holder=may_end_holder)
    try:
        previous = _read_owner(descriptor)
        if previous is not None and not previous.process.is_local:
            raise LockHeld(previous.process.pid, previous.process.host)
        _write(descriptor, json.dumps(owner.to_json()).encode())
        try:
            yield
        finally:
            _write(descriptor, b"")
    finally:
        os.close(descriptor)


@contextmanager
def shared(
    paths: EvolutionPaths,
    *,
    may_end_holder: Callable[[LockOwner], bool] | None = None,
    wait_sec: float = WAIT_SEC,
) -> Iterator[None]:
    """Hold off publishers while the surface is read; for moments only.

    A workspace without ``evo/`` never had a run, so there is nothing to hold off and nothing is created.
    ``may_end_holder`` as in ``exclusive``, for a reader that can tell. Raises LockHeld when a publisher keeps
    the lock for ``wait_sec``.
    """
    if not paths.root.is_dir():
        yield
        return
    descriptor = _acquire(paths.lock_file, fcntl.LOCK_SH, wait_sec=wait_sec, may_end_holder=may_end_holder)
    try:
        yield
    finally:
        os.close(descriptor)


def holder(paths: EvolutionPaths) -> LockOwner | None:
    """The exclusive holder the file names, alive or not; None when it was released in order."""
    try:
        return _parse_owner(paths.lock_file.read_bytes()[:_MAX_BYTES])
    except FileNotFoundError:
        return None


def disown(paths: EvolutionPaths) -> bool:
    """Forget a holder on another host, and whether there was one; a person's decision to move here."""
    named = holder(paths)
    if named is None or named.process.is_local:
        return False
    os.truncate(paths.lock_file, 0)
    return True


def _acquire(
    path: Path, operation: int, *, wait_sec: float, may_end_holder: Callable[[LockOwner], bool] | None
) -> int:
    deadline = clock.suspended_seconds() + wait_sec
    ended = False
    while True:
        descriptor = _open(path, to_write=operation == fcntl.LOCK_EX)
        try:
            if _try(descriptor, operation) and _is_still(descriptor, path):
                return descriptor
            if clock.suspended_seconds() >= deadline:
                if ended or may_end_holder is None or not _end_holder(descriptor, may_end_holder):
                    raise _held(descriptor)
                ended = True
                deadline = clock.suspended_seconds() + _DEATH_SEC
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(_POLL_SEC)


def _open(path: Path, *, to_write: bool) -> int:
    """A reader makes the file only where there is none, so that a read-only workspace can still be read."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    if not to_write:
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | flags)
    return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)


def _try(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether the locked file is the one under the name: someone may have deleted it while we waited."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _end_holder(descriptor: int, may_end_holder: Callable[[LockOwner], bool]) -> bool:
    owner = _read_owner(descriptor)
    if owner is None or not owner.process.is_alive():
        return False
    holders = _flock_pids(descriptor)
    if holders and owner.process.pid not in holders:
        return False
    return may_end_holder(owner) and owner.process.send(signal.SIGKILL)


def _held(descriptor: int) -> LockHeld:
    owner = _read_owner(descriptor)
    if owner is not None and (owner.process.is_alive() or not owner.process.is_local):
        return LockHeld(owner.process.pid, owner.process.host)
    pids = _flock_pids(descriptor)
    return LockHeld(pids[0] if pids else 0, ProcessIdentity.current().host)


def _flock_pids(descriptor: int) -> list[int]:
    """Processes with a ``flock`` on this very inode, from ``/proc/locks`` (waiters are marked ``->``)."""
    inode = str(os.fstat(descriptor).st_ino)
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines if "FLOCK" in line and "->" not in line]
    return [int(field[4]) for field in fields if field[5].rsplit(":", 1)[-1] == inode and int(field[4]) > 0]


def _read_owner(descriptor: int) -> LockOwner | None:
    return _parse_owner(os.pread(descriptor, _MAX_BYTES, 0))


def _parse_owner(data: bytes) -> LockOwner | None:
    """None for an empty, torn or foreign content: the lock itself is the kernel's, the text only names it."""
    try:
        return LockOwner.from_json(safe_json.loads(data))
    except (ValueError, KeyError, TypeError):
        return None


def _write(descriptor: int, data: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)
