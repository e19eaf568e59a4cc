"""Taking secrets out of a process's environment, also where other processes can read it. No Django."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

SECRET_NAMES = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")
_FIRST_FIELD = 3  # /proc/<pid>/stat after the parenthesis, numbered as in proc(5)
_ENVIRONMENT_START = 50
_ENVIRONMENT_END = 51


def drop_secrets() -> None:
    """Remove what no agent may see from ``os.environ`` and from ``/proc/self/environ``.

    The kernel shows the block the process was started with, whatever became of the variables since; forks
    inherit it. So the values are overwritten where they lie.
    """
    for name in SECRET_NAMES:
        os.environ.pop(name, None)
    stat = Path("/proc/self/stat").read_bytes()
    fields = stat[stat.rindex(b")") + 2 :].split()
    start, end = (int(fields[number - _FIRST_FIELD]) for number in (_ENVIRONMENT_START, _ENVIRONMENT_END))
    block = Path("/proc/self/environ").read_bytes()
    if len(block) != end - start:
        raise RuntimeError("/proc/self/environ does not match the bounds the kernel gives for it.")
    offset = 0
    for entry in block.split(b"\0"):
        name = entry.split(b"=", 1)[0].decode(errors="replace")
        if name in SECRET_NAMES:
            ctypes.memset(start + offset, 0, len(entry))
        offset += len(entry) + 1
