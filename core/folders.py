"""Folders: made, held by one writer, and reached without following a symlink, one component after the other."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_FOLDER = frozenset({errno.ELOOP, errno.ENOTDIR})
NOT_REGULAR = "not-a-regular-file"


class NotAFolder(OSError):
    """A component on the way is a symlink or a file."""


def make_below(base: Path, folder: Path) -> None:
    """Make ``folder`` and what is missing on the way to it, but never ``base`` itself.

    A workspace that was moved away or isn't mounted must not come back as an empty folder in its place: what
    was written there would be lost from sight, and the real one could not be put back. Raises
    FileNotFoundError when ``base`` is gone.
    """
    current = base
    try:
        for name in folder.relative_to(base).parts:
            current = current / name
            current.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            errno.ENOENT, "The folder is gone (moved away, or not mounted)", str(base)
        ) from error


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """One writer at a time in this folder, among those that ask; the kernel lets go when its holder dies."""
    descriptor = os.open(folder, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def opened(root: Path, rel: str = "") -> Iterator[int]:
    """A descriptor of the folder ``rel`` below ``root``; ``root`` itself is trusted and may be a link.

    Raises FileNotFoundError, NotAFolder.
    """
    descriptor = os.open(root, _FOLDER)
    try:
        for name in filter(None, rel.split("/")):
            descriptor = _step_into(descriptor, name, root)
        yield descriptor
    finally:
        os.close(descriptor)


def _step_into(descriptor: int, name: str, root: Path) -> int:
    try:
        below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
    except OSError as error:
        if error.errno in _NO_FOLDER:
            raise NotAFolder(
                error.errno, f"{name!r} is a symlink or a file, not a folder", str(root)
            ) from error
        raise
    os.close(descriptor)
    return below


def read_regular(folder: int, name: str) -> tuple[bytes, os.stat_result] | None:
    """Content and status of a regular file; None when ``name`` is something else. Raises FileNotFoundError."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(stream.fileno())
        return (stream.read(), status) if stat.S_ISREG(status.st_mode) else None


def hash_of(folder: int, name: str) -> str | None:
    """SHA-256 of a regular file, None when there is nothing; else a word that is no hash and says what it is."""
    try:
        found = read_regular(folder, name)
    except FileNotFoundError:
        return None
    return hashlib.sha256(found[0]).hexdigest() if found is not None else NOT_REGULAR


def split(rel: str) -> tuple[str, str]:
    """Folder part (empty for none) and name of a relative POSIX path."""
    folder, _, name = rel.rpartition("/")
    return folder, name
