"""Files that agents and wrappers wrote, as much of them as a page can carry; never an error page."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from core.bounded_read import UnreadableFileError, read_bounded
from core.paths import UnsafePathError, inside

MAX_TEXT = 262_144
TAIL = 24_000
MAX_FILES = 300


@dataclass(frozen=True, slots=True)
class Text:
    """``cut`` counts the bytes that are left out, at the beginning of a tail, else at the end."""

    title: str
    text: str
    cut: int = 0


@dataclass(frozen=True, slots=True)
class FileEntry:
    rel: str
    size: int

    @property
    def query(self) -> str:
        """``rel`` for an address; empty for a name that no address can carry."""
        try:
            return quote(self.rel, safe="")
        except UnicodeEncodeError:
            return ""


def head_of(path: Path, title: str, limit: int = MAX_TEXT) -> Text | None:
    """The beginning of a file; None where there is no regular file that can be read."""
    return _part(path, title, limit, tail=False)


def tail_of(path: Path, title: str, limit: int = TAIL) -> Text | None:
    """The end of a file, from a line's beginning."""
    return _part(path, title, limit, tail=True)


def contents(path: Path) -> bytes | None:
    """A whole file for a diff; None when it is missing or no text of a size to be shown."""
    try:
        return read_bounded(path, limit=MAX_TEXT * 4)
    except UnreadableFileError:
        return None


def files_below(folder: Path) -> list[FileEntry]:
    """Regular files of an artifact folder by path, links not followed; at most ``MAX_FILES``."""
    found: list[FileEntry] = []
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root) / name
            if path.is_symlink() or not path.is_file():
                continue
            found.append(FileEntry(path.relative_to(folder).as_posix(), path.stat().st_size))
            if len(found) == MAX_FILES:
                return found
    return found


def file_of(folder: Path, rel: str) -> Text | None:
    """A file that ``files_below`` lists, named by whoever asks: a path that leads out is no file."""
    try:
        path = inside(folder, rel)
    except (UnsafePathError, ValueError):
        return None
    return head_of(path, rel)


def _part(path: Path, title: str, limit: int, *, tail: bool) -> Text | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        cut = max(0, found.st_size - limit)
        data = os.pread(descriptor, limit, cut if tail else 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if tail and cut:
        first, newline, rest = data.partition(b"\n")
        if newline:
            cut, data = cut + len(first) + 1, rest
    return Text(title, data.decode(errors="replace"), cut)
