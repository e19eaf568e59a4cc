"""A person's view as it grows: the records that were appended to a ui log since the last look."""

from __future__ import annotations

import io
import os
from pathlib import Path

from sessions_app.logs.lines import scan
from sessions_app.logs.records import Record
from sessions_app.logs.shapes import MAX_STEP


class LogRewrittenError(Exception):
    """The file isn't the one that was read with something appended; a view of it has to be made anew."""


class Tail:
    """``seq`` and ``epoch`` are those of the last record returned. Never writes.

    The file is kept open, so that its number can't be given to the one that takes its place; it is closed
    with the last reference to this object.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        self._offset = 0
        self.seq = 0
        self.epoch = 0

    def read(self) -> list[Record]:
        """Whole new records in their order; late writers' are left out. Raises LogRewrittenError, OSError.

        Damage that was there at the first look is passed over: it is named where the whole view is shown.
        """
        first = self._offset == 0
        if self._file is None:
            try:
                self._file = io.FileIO(self._path, opener=_open)
            except FileNotFoundError:
                return []
        size = self._size_now(self._file)
        if size == self._offset:
            return []
        found = scan(os.pread(self._file.fileno(), size - self._offset, self._offset))
        if found.damages and not first:
            raise LogRewrittenError(f"{self._path} has a damaged line.")
        self._offset += found.good_end
        return [record for record in found.records if self._is_next(record)]

    def _size_now(self, file: io.FileIO) -> int:
        here = os.fstat(file.fileno())
        try:
            there = self._path.stat()
        except FileNotFoundError as error:
            raise LogRewrittenError(f"{self._path} is gone.") from error
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise LogRewrittenError(f"{self._path} was replaced.")
        if here.st_size < self._offset:
            raise LogRewrittenError(f"{self._path} was cut.")
        return here.st_size

    def _is_next(self, record: Record) -> bool:
        epoch, seq = record.get("e", 0), record.get("seq", 0)
        if record["t"] == "late" or epoch < self.epoch or not self.seq < seq <= self.seq + MAX_STEP:
            return False
        self.epoch, self.seq = epoch, seq
        return True


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)
