"""Who a process is: zombies are gone, a reused pid is somebody else, a detached one belongs to nobody."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.processes import ProcessIdentity, spawn_detached


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    return identity


def await_zombie(pid: int) -> None:
    """Until the child has ended, without reaping it."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_this_process_is_alive_and_survives_json() -> None:
    identity = ProcessIdentity.current()
    assert identity.is_alive()
    assert ProcessIdentity.from_json(identity.to_json()) == identity


def test_a_zombie_is_not_alive(child: subprocess.Popen[bytes]) -> None:
    identity = identity_of(child)
    assert identity.is_alive()
    child.kill()
    await_zombie(child.pid)
    os.kill(child.pid, 0)  # the kernel still knows the pid
    assert not identity.is_alive()
    assert ProcessIdentity.of(child.pid) is None
    assert not identity.send(signal.SIGTERM)


@pytest.mark.parametrize(
    "change",
    [{"start_time": 1}, {"boot_id": "another boot"}, {"host": "another-host"}],
    ids=["reused pid", "rebooted", "another host"],
)
def test_another_process_of_the_same_pid_is_neither_alive_nor_hit(
    child: subprocess.Popen[bytes], change: dict[str, object]
) -> None:
    other = dataclasses.replace(identity_of(child), **change)  # type: ignore[arg-type]
    assert not other.is_alive()
    assert not other.send(signal.SIGKILL)
    assert child.poll() is None


def test_a_signal_reaches_the_very_process(child: subprocess.Popen[bytes]) -> None:
    assert identity_of(child).send(signal.SIGTERM)
    assert child.wait() == -signal.SIGTERM


def test_another_users_process_is_not_reached(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    assert not identity_of(child).send(signal.SIGKILL)
    assert child.poll() is None


def test_a_process_that_never_was_is_nobody() -> None:
    nobody = dataclasses.replace(ProcessIdentity.current(), pid=2**22 + 1)
    assert not nobody.is_alive()
    assert not nobody.send(signal.SIGTERM)


_REPORT = (
    "import os, sys\n"
    "fd = os.open(sys.argv[1], os.O_WRONLY)\n"
    "names = sorted(os.listdir('/proc/self/fd'), key=int)\n"
    "inherited = [n for n in names if int(n) > 2 and int(n) != fd and os.path.exists('/proc/self/fd/' + n)]\n"
    "os.write(fd, repr([os.getpid(), os.getsid(0), os.getcwd(), dict(os.environ).get('MARK'), inherited]).encode())\n"
    "print('to the log', flush=True)\n"
    "os.close(fd)\n"
    "os.open(sys.argv[2], os.O_RDONLY)\n"
)


def test_a_detached_process_has_its_own_session_no_descriptors_and_leaves_no_zombie(tmp_path: Path) -> None:
    report, release = tmp_path / "report", tmp_path / "release"
    os.mkfifo(report)
    os.mkfifo(release)
    reader = os.open(report, os.O_RDONLY | os.O_NONBLOCK)
    leak = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leak, True)
    log = tmp_path / "logs" / "x.log"
    try:
        spawn_detached(
            [sys.executable, "-c", _REPORT, str(report), str(release)],
            environment={"MARK": "m"},
            folder=tmp_path,
            log=log,
        )
        assert select.select([reader], [], [], 60)[0]
        pid, session, folder, mark, inherited = eval(os.read(reader, 4096))  # noqa: S307 - our own child's words
        identity = ProcessIdentity.of(pid)
        assert identity is not None
        assert (session, folder, mark, inherited) == (session, str(tmp_path), "m", [])
        assert session != os.getsid(0)
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # it is nobody's child here, so it can't become our zombie
        watched = os.pidfd_open(pid)
        with release.open("wb"):
            pass
        assert select.select([watched], [], [], 60)[0]
        os.close(watched)
        assert not identity.is_alive()
        assert log.read_text() == "to the log\n"
    finally:
        os.close(reader)
        os.close(leak)


def test_a_program_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="can't be executed"):
        spawn_detached([str(tmp_path / "none")], environment={}, folder=tmp_path, log=tmp_path / "log")
    assert not (tmp_path / "log").exists()
