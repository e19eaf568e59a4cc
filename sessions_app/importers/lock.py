"""One conversion of a file at a time: a lock file that names the converting process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.processes import ProcessIdentity

WAIT_SEC = 10.0
_POLL_SEC = 0.05


class ImportLockHeld(Exception):
    """Another live process has been converting the same file for longer than the wait."""


@contextmanager
def conversion_lock(path: Path, *, wait_sec: float = WAIT_SEC) -> Iterator[None]:
    """Hold ``path``; a live holder is waited for, then ImportLockHeld.

    Taken over at once: a dead holder's (boot id, pid and start time decide, so our own pid in a dead
    predecessor's file is one). An empty file, whose writer died in between, once it is older than the wait.
    """
    mine = json.dumps(ProcessIdentity.current().to_json())
    deadline = time.monotonic() + wait_sec
    while not _taken(path, mine):
        if _is_abandoned(path, wait_sec):
            with suppress(FileNotFoundError):
                path.unlink()
        elif time.monotonic() >= deadline:
            raise ImportLockHeld(f"Another process is importing this file ({path}). Try again in a moment.")
        else:
            time.sleep(_POLL_SEC)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _taken(path: Path, mine: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, mine.encode())
    finally:
        os.close(descriptor)
    return True


def _is_abandoned(path: Path, wait_sec: float) -> bool:
    try:
        text = path.read_text()
        age = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return False
    try:
        return not ProcessIdentity.from_json(json.loads(text)).is_alive()
    except (ValueError, KeyError, TypeError):
        return age > wait_sec
