"""A command and all it started: signalled together, looked for together. Python 3.9 too."""

from __future__ import annotations

import os
from pathlib import Path


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def group_lives(group: int) -> bool:
    """Whether a process of the group lives that isn't a zombie. Without /proc it is assumed to."""
    try:
        numbers = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except FileNotFoundError:
        return True
    for number in numbers:
        try:
            stat = Path("/proc", number, "stat").read_bytes()
        except OSError:
            continue
        fields = stat[stat.rindex(b")") + 2 :].split()
        if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
            return True
    return False
