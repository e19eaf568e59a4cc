"""As much of a zip as a page can show, put into a folder for a moment. No Django.

Anybody with a full shell may have written the zip: names are checked as when it is unpacked, and nothing in it can
make a reader wait, or fill a disk or a memory.
"""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path

from evolution.zips import DAMAGE, ZipDamaged, extract, opened, path_of

MAX_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 5_000
_MAX_READ = 4 * 1024 * 1024
"""A zip's list of its entries is read in one go."""
_NAMED = 5


def read_out(archive: Path, folder: Path, *, first: str) -> list[str]:
    """Put the files of ``archive`` below ``folder``; what was left out and why, in words.

    Those at the top and those below ``first`` before all others, so that they aren't crowded out. Raises OSError,
    FileNotFoundError without the zip, ZipDamaged for what is no zip, or has names that nobody packed here.
    """
    large: list[str] = []
    damaged: list[str] = []
    room = MAX_BYTES
    with _Bounded(archive) as stream, opened(stream) as found:
        entries = found.infolist()
        _check_names(entries, folder)
        for info in sorted(entries, key=lambda info: _place(info, first)):
            if info.file_size > min(MAX_FILE_BYTES, room):
                large.append(info.filename)
                continue
            room -= info.file_size
            try:
                extract(found, info, folder, durable=False)
            except ZipDamaged:
                path_of(info, folder).unlink(missing_ok=True)
                damaged.append(info.filename)
    return [*_said(damaged, "damaged"), *_said(large, "too large to be shown here")]


def read_member(archive: Path, rel: str, *, limit: int) -> bytes | None:
    """The beginning of one file; None when the zip or the file isn't there or can't be read."""
    try:
        with _Bounded(archive) as stream, opened(stream) as found, found.open(rel) as member:
            return member.read(limit)
    except (OSError, KeyError, ZipDamaged, *DAMAGE):
        return None


def _check_names(entries: Sequence[zipfile.ZipInfo], folder: Path) -> None:
    if len(entries) > MAX_ENTRIES:
        raise ZipDamaged(f"it has {len(entries)} entries, and no more than {MAX_ENTRIES} are read")
    if len({path_of(info, folder) for info in entries}) < len(entries):
        raise ZipDamaged("something is in it twice")


def _place(info: zipfile.ZipInfo, first: str) -> tuple[bool, int]:
    return "/" in info.filename and not info.filename.startswith(first), info.file_size


def _said(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    shown = ", ".join(name[:200] for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"{shown}{more} {'is' if len(names) == 1 else 'are'} {what}"]


class _Bounded(io.FileIO):
    """A regular file that is never read in pieces larger than a reader has room for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
        if not stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            self.close()
            raise ZipDamaged("it is no file")

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = _MAX_READ + 1 if size is None or size < 0 else min(size, _MAX_READ + 1)
        data = super().read(wanted) or b""
        if len(data) > _MAX_READ:
            raise zipfile.BadZipFile("its list of entries is longer than is read")
        return data
