"""What a sandboxed command may use of the machine, with all it starts. Linked machines run this too, on
Python 3.9.

The kernel holds every process to its memory and to the size of a file: set outside before the sandbox is built,
so that inside nobody can raise it again, root neither. It doesn't hold root to a number of processes, nor
several processes to a sum. Both are looked at while the command runs, and a sandbox that is over is killed as a
whole: all in it end with its first process.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.tools.context import ToolLimits

LOOK_SEC = 0.05
"""How often the machine's number of tasks is looked at, which costs one small read."""

COUNT_SEC = 0.25
"""How often the sandbox's own processes are counted, whatever the machine's number says."""

MB = 1024 * 1024
_PROC = Path("/proc")
_SET_LIMITS = """
{ ulimit -c 0 && ulimit -d "$1" && ulimit -f "$2"; } 2>/dev/null || {
  echo "bwrap: the limits of the sandbox can't be set" >&2
  exit 1
}
shift 2
exec "$@"
"""


def memory_bytes(limits: ToolLimits) -> int:
    """0 in the settings stands for half of what the machine has."""
    return limits.sandbox_memory_mb * MB or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def limited(arguments: list[str], limits: ToolLimits) -> list[str]:
    """``arguments`` started by a shell that sets what the kernel enforces: no core files, memory, file size."""
    memory = _at_most(resource.RLIMIT_DATA, memory_bytes(limits)) // 1024
    file_size = _at_most(resource.RLIMIT_FSIZE, limits.sandbox_file_mb * MB) // 512
    return ["/bin/sh", "-c", _SET_LIMITS, "sandbox", str(memory), str(file_size), *arguments]


def _at_most(limit: int, wanted: int) -> int:
    """``wanted``, or what this process is held to itself when that is less and can't be raised."""
    _, hard = resource.getrlimit(limit)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


class Usage:
    """What the processes below ``leader`` use, against the limits. Ask ``excess`` again and again."""

    def __init__(self, leader: int, limits: ToolLimits) -> None:
        self._leader = leader
        self._most_tasks = limits.sandbox_processes
        self._memory = memory_bytes(limits)
        self._tasks_before = _tasks_of_machine()
        self._next_count = time.monotonic() + COUNT_SEC

    def excess(self) -> str:
        """What is over, in words for the model; empty while nothing is.

        A command that forks as fast as it can is noticed by the machine's number, before its processes are
        too many to be counted in a moment.
        """
        now = time.monotonic()
        if now < self._next_count and _tasks_of_machine() - self._tasks_before < self._most_tasks:
            return ""
        self._next_count = now + COUNT_SEC
        processes = list(_processes(self._leader, at_most=self._most_tasks))
        if sum(tasks for _, tasks in processes) > self._most_tasks:
            return f"it had more than {self._most_tasks:,} processes and threads at once"
        if self._uses_too_much(process for process, _ in processes):
            return f"its processes used more than {self._memory // MB:,} MB of memory"
        return ""

    def _uses_too_much(self, processes: Iterable[int]) -> bool:
        """Memory that several share counts once; to find that out takes longer, so it is asked last."""
        known = list(processes)
        if sum(_figures(process, "status", ("RssAnon", "RssShmem")) for process in known) <= self._memory:
            return False
        shares = ("Pss_Anon", "Pss_Shmem")
        return sum(_figures(process, "smaps_rollup", shares) for process in known) > self._memory


def _tasks_of_machine() -> int:
    """Processes and threads of the whole machine, other containers' too."""
    return int((_PROC / "loadavg").read_text().split()[3].partition("/")[2])


def _processes(leader: int, *, at_most: int) -> Iterator[tuple[int, int]]:
    """``leader`` and all below it, each with the number of its threads; none more once they are too many."""
    pending, found = [leader], 0
    while pending and found <= at_most:
        process = pending.pop()
        tasks = _tasks(process)
        found += len(tasks)
        yield process, len(tasks)
        pending += [int(child) for task in tasks for child in _read(task / "children").split()]


def _tasks(process: int) -> list[Path]:
    try:
        return list((_PROC / str(process) / "task").iterdir())
    except OSError:
        return []  # it has ended


def _figures(process: int, file: str, names: tuple[str, ...]) -> int:
    """The sum of these lines of a file below ``/proc/<pid>/``, in bytes."""
    lines = (line.split() for line in _read(_PROC / str(process) / file).splitlines())
    return sum(int(line[1]) * 1024 for line in lines if len(line) > 1 and line[0].rstrip(":") in names)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # it has ended
