"""Reading a file that anybody may have put there: regular files only, up to a size."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class UnreadableFileError(Exception):
    """The file is there but isn't read: no regular file, too large, or not permitted. The text says which."""


def read_bounded(path: str | Path, *, limit: int) -> bytes | None:
    """The bytes of ``path`` (symlinks followed); None when there is no such file.

    Never blocks on a pipe or a device. Raises UnreadableFileError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
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


def _read_up_to(descriptor: int, length: int) -> bytes:
    chunks: list[bytes] = []
    while length > 0 and (chunk := os.read(descriptor, min(length, 1 << 20))):
        chunks.append(chunk)
        length -= len(chunk)
    return b"".join(chunks)
