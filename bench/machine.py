"""What the figures were measured on: enough to compare, nothing that names a host or a person."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
from pathlib import Path


def describe() -> dict[str, str]:
    return {
        "CPU": _first(Path("/proc/cpuinfo"), r"model name\s*:\s*(.+)") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _memory(),
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
    }


def _memory() -> str:
    kilobytes = _first(Path("/proc/meminfo"), r"MemTotal:\s*(\d+)")
    return f"{int(kilobytes) / 1024**2:.1f} GiB" if kilobytes else "unknown"


def _first(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text())
    return match[1].strip() if match else ""
