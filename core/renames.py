"""Renames that never replace anything: ``renameat2`` by ctypes, since Python has no wrapper for it.

Both raise OSError as the kernel does. ``UNSUPPORTED`` is the set of errno values by which a kernel or a file system
says that it lacks the call; what to do then is the caller's business.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache
from typing import Any

UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_NOREPLACE = 1
_EXCHANGE = 2


def exchange(source_folder: int, source: str, target_folder: int, target: str) -> None:
    """Swap two names of one file system in one step; both must exist. A symlink is swapped itself."""
    _renameat2(source_folder, source, target_folder, target, _EXCHANGE)


def no_replace(source_folder: int, source: str, target_folder: int, target: str) -> None:
    """Move ``source`` to ``target``; FileExistsError when something is there, and then nothing happened."""
    _renameat2(source_folder, source, target_folder, target, _NOREPLACE)


@cache
def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _renameat2(source_folder: int, source: str, target_folder: int, target: str, flags: int) -> None:
    try:
        call = _library().renameat2
    except AttributeError as missing:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source) from missing
    if call(source_folder, os.fsencode(source), target_folder, os.fsencode(target), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source, None, target)
