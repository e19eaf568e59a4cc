"""Taking secrets out of a process's environment, also where other processes can read it. No Django."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents.environment import SECRET_NAMES
from core.paths import halo_home
from core.settings_file import Settings

_FIRST_FIELD = 3  # /proc/<pid>/stat after the parenthesis, numbered as in proc(5)
_ENVIRONMENT_START = 50
_ENVIRONMENT_END = 51


@dataclass(frozen=True, slots=True)
class Keys:
    """What a provider's key is found in; kept in memory, out of reach of what the agent starts."""

    settings: Settings = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)


def take_secrets() -> Keys:
    """Remove what no agent may see from this process's environment; the keys that its models need.

    The kernel shows in ``/proc/<pid>/environ`` the block the process was started with, whatever became of
    the variables since, and forks inherit it. So the values are overwritten where they lie.
    """
    keys = Keys(Settings.load(halo_home()), dict(os.environ))
    secret = SECRET_NAMES | keys.settings.secret_variables()
    for name in secret:
        os.environ.pop(name, None)
    stat = Path("/proc/self/stat").read_bytes()
    fields = stat[stat.rindex(b")") + 2 :].split()
    start, end = (int(fields[number - _FIRST_FIELD]) for number in (_ENVIRONMENT_START, _ENVIRONMENT_END))
    block = Path("/proc/self/environ").read_bytes()
    if len(block) != end - start:
        raise RuntimeError("/proc/self/environ does not match the bounds the kernel gives for it.")
    offset = 0
    for entry in block.split(b"\0"):
        if entry.split(b"=", 1)[0].decode(errors="replace") in secret:
            ctypes.memset(start + offset, 0, len(entry))
        offset += len(entry) + 1
    return keys
