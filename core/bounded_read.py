"""Reading a file that anybody may have put there: regular files only, up to a size."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class UnreadableFileError(Exception):
    """The file is there but isn't read: no regular file, too large, or not permitted. The text says which."""


def read_bounded(path: str | Path, *, limit: int, real_root: str | None = None) -> bytes | None:
    """The bytes of ``path`` (symlinks followed); None when there is no such file.

    ``real_root``: a folder in which others may write while this reads, and ``path`` is a real path below it.
    A symlink on the way from there was put in after the path was looked up, and is refused.
    Never blocks on a pipe or a device. Raises UnreadableFileError.
    """
    try:
        descriptor = os.open(path, _FLAGS) if real_root is None else _open_beneath(real_root, path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP and real_root is not None:
            raise UnreadableFileError("was replaced by a symlink while it was being opened") from error
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableFileError(f"can't be opened: {reason}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableFileError("is not a regular file")
        data = _read_up_to(descriptor, limit + 1)
    except OSError as error:
        raise UnreadableFileError(f"can't be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise UnreadableFileError(f"is larger than {limit} bytes")
    return data


def _open_beneath(real_root: str, path: str | Path) -> int:
    names = Path(path).relative_to(real_root).parts
    folder = os.open(real_root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            below = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = below
            if stat.S_ISLNK(os.fstat(folder).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.open(names[-1] if names else ".", _FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def _read_up_to(descriptor: int, length: int) -> bytes:
    chunks: list[bytes] = []
    while length > 0 and (chunk := os.read(descriptor, min(length, 1 << 20))):
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)
