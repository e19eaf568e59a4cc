"""The file lock of one row's folder: packing, unpacking and removing it keep out of each other's way. No Django.

``flock`` on a file of its own beside the zip: the kernel lets go when its holder dies. It is removed by whoever
holds it, and a waiter that then holds a file without a name opens it anew.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core import clock

_POLL_SEC = 0.05


class FolderBusy(Exception):
    """Somebody else works on the folder."""


@contextmanager
def holding(lock: Path, *, wait_sec: float = 0.0) -> Iterator[None]:
    """Raises FolderBusy after ``wait_sec``, OSError where the lock can't be made (a workspace that is gone)."""
    lock.parent.mkdir(exist_ok=True)
    deadline = clock.suspended_seconds() + wait_sec
    descriptor = _taken(lock)
    while descriptor is None:
        if clock.suspended_seconds() >= deadline:
            raise FolderBusy(lock.name)
        time.sleep(_POLL_SEC)
        descriptor = _taken(lock)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(descriptor)


def _taken(lock: Path) -> int | None:
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), lock.lstat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
