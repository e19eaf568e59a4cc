"""What a sandboxed command may use of the machine: memory, processes, the size of a file."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents import sandbox_limits, views
from agents.sandbox_limits import Usage, memory_bytes
from agents.tools.context import ToolContext, ToolLimits
from agents.tools.shell_exec import shell_exec
from agents.view import View

from .conftest import Held, Place

MB = 1024 * 1024


def run(view: View, command: str, **limits: int) -> str:
    return shell_exec(ToolContext(view, ToolLimits(**limits)), command)


@pytest.fixture
def view(place: Place) -> View:
    return views.workspace_view(place.root, place.global_folder)


@pytest.mark.sandbox
class TestInTheSandbox:
    def test_a_process_gets_no_more_memory_than_it_may(self, view: View) -> None:
        hog = f"python3 -c 'bytearray(300 * {MB})'; echo alive"
        out = run(view, hog, sandbox_memory_mb=128)
        assert "MemoryError" in out and out.endswith("alive\n\n[exit code 0]")
        assert run(view, hog, sandbox_memory_mb=600) == "alive\n\n[exit code 0]"

    def test_several_processes_get_no_more_memory_together(self, view: View, held: Held) -> None:
        hog = f"python3 -c 'import signal; kept = b\"x\" * (60 * {MB}); signal.pause()' &"
        out = run(view, f"exec 3>{held.name}; {hog * 4} wait", sandbox_memory_mb=128, shell_timeout_sec=300)
        assert "[killed, with all it had started: its processes used more than 128 MB of memory]" in out
        assert held.wait() == b"", "the last process that held the pipe has gone"

    @pytest.mark.parametrize(
        "many",
        [
            "for i in $(seq 60); do sleep 600 & done; wait",
            "for i in $(seq 60); do (setsid sleep 600 &) ; done; sleep 600",
            "python3 -c 'import signal, threading\n"
            "for i in range(60): threading.Thread(target=signal.pause).start()\n"
            "signal.pause()'",
        ],
        ids=["processes", "left by their parents", "threads"],
    )
    def test_there_are_no_more_processes_than_there_may_be(self, view: View, held: Held, many: str) -> None:
        out = run(view, f"exec 3>{held.name}; {many}", sandbox_processes=40, shell_timeout_sec=300)
        assert "it had more than 40 processes and threads at once" in out
        assert "[exit code -9]" in out
        assert held.wait() == b"", "the last process that held the pipe has gone"

    def test_fewer_are_left_alone(self, view: View) -> None:
        out = run(view, "for i in $(seq 20); do sleep 1 & done; wait; echo done", sandbox_processes=40)
        assert out == "done\n\n[exit code 0]"

    def test_a_file_grows_no_larger_than_it_may(self, view: View, place: Place) -> None:
        out = run(view, f"head -c {3 * MB} /dev/zero > big; echo $?", sandbox_file_mb=1)
        assert (place.root / "big").stat().st_size == MB
        assert out.splitlines()[-3] == str(128 + 25), "ended by SIGXFSZ"
        run(view, f"head -c {3 * MB} /dev/zero > big", sandbox_file_mb=3)
        assert (place.root / "big").stat().st_size == 3 * MB

    @pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
    def test_files_in_memory_are_bounded_too(self, view: View, folder: str) -> None:
        fill = f"head -c {40 * MB} /dev/zero > {folder}/big; stat -c %s {folder}/big"
        out = run(view, fill, sandbox_memory_mb=64)
        assert "No space left on device" in out and f"\n{32 * MB}\n" in out
        assert run(view, fill, sandbox_memory_mb=128).startswith(f"{40 * MB}\n")

    def test_the_rest_of_what_is_made_of_memory_cannot_be_written(self, place: Place) -> None:
        """The root, ``/dev``, and what covers a HALO_HOME within the workspace."""
        (place.root / "home/secrets").mkdir(parents=True)
        view = views.workspace_view(place.root, place.root / "home/global")
        for folder in ("", "/dev", "/etc", place.root / "home"):
            out = run(view, f"echo x > {folder}/made")
            assert "Read-only file system" in out and "[exit code 1]" in out, folder
        assert run(view, "echo x > /dev/null; cat <(echo ok) > /dev/stdout").startswith("ok\n")

    @pytest.mark.parametrize("what", ["-d", "-f", "-c"])
    def test_no_limit_can_be_raised_again_inside(self, view: View, what: str) -> None:
        out = run(view, f"ulimit -H {what}; ulimit {what} unlimited && echo raised", sandbox_memory_mb=512)
        assert not out.startswith("unlimited") and "raised" not in out

    def test_this_processs_own_limits_hold_on(self, view: View, monkeypatch: pytest.MonkeyPatch) -> None:
        """A service that is held to less by its unit can't raise that for its commands, and need not."""
        held_to = {resource.RLIMIT_DATA: 700 * MB, resource.RLIMIT_FSIZE: 2 * MB}
        monkeypatch.setattr(resource, "getrlimit", lambda limit: (held_to[limit], held_to[limit]))
        assert run(view, "ulimit -H -d; ulimit -H -f").splitlines()[:2] == [str(700 * 1024), "2048"]


def test_memory_without_a_setting_is_half_of_the_machines() -> None:
    (line,) = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")]
    assert memory_bytes(ToolLimits()) == pytest.approx(int(line.split()[1]) * 1024 / 2, rel=0.01)
    assert memory_bytes(ToolLimits(sandbox_memory_mb=5)) == 5 * MB


@contextmanager
def started(program: str) -> Iterator[int]:
    """A Python program that says when it is ready and then waits to be told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


FAMILY = f"""
import os
kept = b"x" * (40 * {MB})
reader, writer = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
print("ready", flush=True)
input_ended = os.read(0, 1)
"""


def excess(leader: int, monkeypatch: pytest.MonkeyPatch, **limits: int) -> str:
    monkeypatch.setattr(sandbox_limits, "COUNT_SEC", 0.0)
    return Usage(leader, ToolLimits(**limits)).excess()


def test_memory_that_processes_share_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(FAMILY) as leader:
        assert excess(leader, monkeypatch, sandbox_memory_mb=150) == ""
        assert "more than 35 MB" in excess(leader, monkeypatch, sandbox_memory_mb=35)


def test_children_are_counted_with_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(FAMILY) as leader:
        assert excess(leader, monkeypatch, sandbox_processes=6) == ""
        assert "more than 5 processes" in excess(leader, monkeypatch, sandbox_processes=5)


def test_a_sudden_crowd_is_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's number of tasks jumps: there is no waiting for the next count."""
    tasks = iter([100, 104, 106])
    monkeypatch.setattr(sandbox_limits, "_tasks_of_machine", lambda: next(tasks))
    monkeypatch.setattr(sandbox_limits, "COUNT_SEC", 3600.0)
    with started(FAMILY) as leader:
        usage = Usage(leader, ToolLimits(sandbox_processes=5))
        assert usage.excess() == ""
        assert "more than 5 processes" in usage.excess()


def test_who_has_ended_uses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(FAMILY) as leader:
        pass
    assert excess(leader, monkeypatch, sandbox_memory_mb=1, sandbox_processes=16) == ""
