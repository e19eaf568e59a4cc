"""The supervisor with children of its own that stand for web and cluster: restarts, silence, a clean end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from core.processes import ProcessIdentity
from halo_site.supervisor import (
    TICK_SILENCE,
    WEB_LOOK,
    WEB_SILENT_LOOKS,
    Child,
    StartFailed,
    Supervisor,
    answers,
)

IDLE = [sys.executable, "-c", "import signal; signal.pause()"]
SAYS_PORT = (
    "import os, signal, sys; os.write(int(sys.argv[sys.argv.index('--ready-fd') + 1]), b'{\"port\": 4711}\\n');"
    "signal.pause()"
)

SERVES = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if "--ready-fd" in sys.argv:
    ready = int(sys.argv[sys.argv.index("--ready-fd") + 1])
    os.write(ready, b'{"port": %d}\\n' % server.server_address[1])
server.serve_forever()
"""


class World:
    """A clock that stands until it is moved, and what was said."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, tzinfo=UTC)
        self.ticked: datetime | None = None
        self.said: list[str] = []
        self.web = Child(name="web", command=IDLE)
        self.cluster = Child(name="cluster", command=IDLE)
        self.supervisor = Supervisor(
            web=self.web,
            cluster=self.cluster,
            say=self.said.append,
            now=lambda: self.time,
            last_cluster_tick=lambda: self.ticked,
            web_answers=lambda _port: True,
        )

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    world.web.start(now=world.time)
    world.cluster.start(now=world.time)
    yield world
    world.supervisor.end()


def _identity(child: Child) -> ProcessIdentity:
    assert child.process is not None
    identity = ProcessIdentity.of(child.process.pid)
    assert identity is not None
    return identity


def test_a_child_that_dies_is_started_again_and_named(world: World) -> None:
    assert world.web.process is not None
    world.web.process.kill()
    world.web.process.wait()
    world.pass_by(5)

    world.supervisor.look_once()

    assert _identity(world.web).is_alive()
    assert world.web.starts == 2
    assert world.said == ["web ended (exit code -9); starting it again."]


def test_a_child_that_dies_at_once_is_not_restarted_in_a_tight_circle(world: World) -> None:
    assert world.web.process is not None
    world.web.process.kill()
    world.web.process.wait()

    world.supervisor.look_once()

    assert world.web.starts == 1


def test_a_cluster_that_stopped_ticking_is_replaced(world: World) -> None:
    wedged = _identity(world.cluster)
    world.ticked = world.time + timedelta(seconds=60)
    world.pass_by(60 + TICK_SILENCE.seconds)
    world.supervisor.look_once()
    assert world.cluster.starts == 1

    world.pass_by(1)
    world.supervisor.look_once()

    assert not wedged.is_alive()
    assert _identity(world.cluster).is_alive()
    assert "replacing it" in world.said[-1]


def test_a_cluster_that_no_signal_reaches_is_replaced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process stands for one that hangs: SIGTERM does nothing to it."""
    monkeypatch.setattr(Child.stop, "__kwdefaults__", {"wait_sec": 0.3})
    assert world.cluster.process is not None
    world.cluster.process.send_signal(signal.SIGSTOP)
    wedged = _identity(world.cluster)
    world.supervisor.look_once()
    assert world.cluster.starts == 1

    world.pass_by(TICK_SILENCE.seconds + 1)
    world.supervisor.look_once()

    assert not wedged.is_alive()
    assert _identity(world.cluster).is_alive()


def test_a_web_process_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Child.stop, "__kwdefaults__", {"wait_sec": 0.3})
    monkeypatch.setattr("halo_site.supervisor.WEB_ANSWER_SEC", 0.3)
    time, said = [datetime(2026, 3, 1, tzinfo=UTC)], list[str]()
    web = Child(name="web", command=[sys.executable, "-c", SERVES])
    supervisor = Supervisor(
        web=web,
        cluster=None,
        say=said.append,
        now=lambda: time[0],
        last_cluster_tick=lambda: None,
        web_answers=lambda port: answers("127.0.0.1", port),
    )
    try:
        supervisor.start_web()
        for _ in range(2 * WEB_SILENT_LOOKS):
            time[0] += WEB_LOOK
            supervisor.look_once()
        assert (web.starts, said) == (1, []), "it answers"

        hung = _identity(web)
        assert web.process is not None
        web.process.send_signal(signal.SIGSTOP)
        for _ in range(WEB_SILENT_LOOKS - 1):
            time[0] += WEB_LOOK
            supervisor.look_once()
            supervisor.look_once()  # too early for another look at it
        assert web.starts == 1
        time[0] += timedelta(hours=8)  # the machine slept
        supervisor.look_once()

        assert not hung.is_alive()
        assert web.starts == 2
        assert "hasn't answered" in said[-1]
    finally:
        supervisor.end()


def test_workers_that_survive_their_parent_are_ended_with_it() -> None:
    parent = (
        "import subprocess, sys, signal; child = subprocess.Popen([sys.executable, '-c', 'import signal; "
        "signal.signal(15, signal.SIG_IGN); signal.pause()']); print(child.pid, flush=True); signal.pause()"
    )
    import os

    read_end, write_end = os.pipe()
    relay = f"import os; os.dup2({write_end}, 1)\n{parent}"
    child = Child(name="cluster", command=[sys.executable, "-c", relay])
    child.start(now=datetime(2026, 3, 1, tzinfo=UTC), descriptors=(write_end,))
    os.close(write_end)
    with os.fdopen(read_end) as output:
        worker = ProcessIdentity.of(int(output.readline()))
    assert worker is not None
    assert child.process is not None
    child.process.kill()
    child.process.wait()

    child.stop()

    assert _gone(worker)


def test_a_web_process_that_never_listens_is_told() -> None:
    supervisor = Supervisor(
        web=Child(name="web", command=[sys.executable, "-c", "raise SystemExit(3)"]),
        cluster=None,
        say=lambda text: None,
        now=lambda: datetime(2026, 3, 1, tzinfo=UTC),
        last_cluster_tick=lambda: None,
        web_answers=lambda _port: True,
    )

    with pytest.raises(StartFailed, match="ended before it listened"):
        supervisor.start_web()
    supervisor.end()


def test_without_setpriv_it_says_what_is_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(StartFailed, match=r"setpriv is missing.*util-linux"):
        world.supervisor.start_web()


def test_a_restart_keeps_the_port_that_the_system_chose() -> None:
    web = Child(name="web", command=[sys.executable, "-c", SAYS_PORT, "--port", "0"])
    supervisor = Supervisor(
        web=web,
        cluster=None,
        say=lambda text: None,
        now=lambda: datetime(2026, 3, 1, tzinfo=UTC),
        last_cluster_tick=lambda: None,
        web_answers=lambda _port: True,
    )
    try:
        assert supervisor.start_web() == 4711
        assert list(web.command)[-2:] == ["--port", "4711"]
    finally:
        supervisor.end()


def _gone(identity: ProcessIdentity) -> bool:
    """SIGKILL is delivered, if not at this very moment."""
    import time

    deadline = time.monotonic() + 5
    while identity.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not identity.is_alive()
