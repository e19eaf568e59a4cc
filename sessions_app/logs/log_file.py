"""One log file: appends that notice foreign writers, and whole replacements that lose nobody's append.

Writers on this machine take ``flock`` on the file itself around check and write; a writer that doesn't is
noticed afterwards by inode, size and time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from core import atomic
from sessions_app.logs.lines import Scan, scan


class LeaseLostError(Exception):
    """Another process holds the session now; what this one still wanted to write was not folded in.

    ``epoch``: the highest one found in the log, 0 when only the clock said so.
    """

    def __init__(self, text: str, *, epoch: int = 0) -> None:
        super().__init__(text)
        self.epoch = epoch


class ForeignChangeError(Exception):
    """The file is no longer what this writer last read or wrote; nothing was written. Read it again."""


class Stamp(NamedTuple):
    inode: int
    size: int
    time_ns: int


ABSENT = Stamp(0, 0, 0)

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class LogFile:
    """``known`` is the stamp of what was last read or written here; None before the first read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)
        self.known: Stamp | None = None
        self._torn = 0

    @property
    def known_end(self) -> int:
        """Where this writer's knowledge of the file ends, an unfinished last line left out."""
        return 0 if self.known is None else self.known.size - self._torn

    def changed(self) -> bool:
        """Whether the file on disk differs from what this writer knows."""
        try:
            found = _stamp(self.path.stat())
        except FileNotFoundError:
            found = ABSENT
        return found != self.known

    def read(self) -> Scan:
        """All records of the file, which is then known. Never writes: the next append cuts a torn tail."""
        try:
            with self.path.open("rb") as stream:
                before = _stamp(os.fstat(stream.fileno()))
                data = stream.read()
        except FileNotFoundError:
            self.known, self._torn = ABSENT, 0
            return Scan()
        result = scan(data)
        self.known = Stamp(before.inode, len(data), before.time_ns)
        self._torn = result.torn
        return result

    def append(self, data: bytes, *, sync: bool) -> None:
        """Append ``data`` with one write. Raises ForeignChangeError, or OSError with the file as it was."""
        with self._locked() as (descriptor, found):
            size = found.size
            if self._torn:
                size -= self._torn
                os.ftruncate(descriptor, size)
                self._torn = 0
            try:
                atomic.write_all(descriptor, data)
                if sync:
                    os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                self.known = _stamp(os.fstat(descriptor))
                raise
            after = _stamp(os.fstat(descriptor))
            self.known = Stamp(after.inode, size + len(data), after.time_ns)
        if sync and size == 0:
            atomic.fsync_folder(self.path.parent)

    def replace(self, data: bytes, *, beside: Mapping[Path, bytes] | None = None) -> None:
        """Put a whole new file in place. Raises ForeignChangeError when the old one isn't what was read.

        ``beside``: other files to be written first, by their path, while nobody else may replace this one.
        """
        with self._locked():
            for path, content in (beside or {}).items():
                atomic.write_bytes(path, content, mode=0o600)
            atomic.write_bytes(self.path, data, mode=0o600)
            self.known, self._torn = _stamp(self.path.stat()), 0

    def sync(self) -> None:
        """fsync what was appended before without one."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, Stamp]]:
        """The file at ``path`` opened for appending, locked, and found as it is known.

        Opened again when it was replaced meanwhile. Raises ForeignChangeError.
        """
        while True:
            descriptor = os.open(self._name, _FLAGS, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                found = _stamp(os.fstat(descriptor))
                if not self._is_at_path(found.inode):
                    continue
                if found != self.known and not (self.known == ABSENT and found.size == 0):
                    raise ForeignChangeError(str(self.path))
                yield descriptor, found
                return
            finally:
                os.close(descriptor)

    def _is_at_path(self, inode: int) -> bool:
        try:
            return os.stat(self._name).st_ino == inode  # noqa: PTH116 - half the time of Path.stat, at every append
        except FileNotFoundError:
            return False


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns)
