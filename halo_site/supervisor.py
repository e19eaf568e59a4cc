"""Two children, kept alive: the web process and the django-q2 cluster behind ``halo up``.

Both run in sessions of their own, so that Ctrl-C reaches only us and they are ended in order. The kernel tells
them when we die. SIGTERM goes to a child's main process alone (a cluster hangs when its workers get it too);
what is left of its group after that is killed, workers that survive their parent among them.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

STOP_WAIT_SEC = 15.0
START_WAIT_SEC = 60.0
RESTART_AFTER_SEC = 2.0
TICK_SILENCE = timedelta(seconds=150)
WEB_LOOK = timedelta(seconds=10)
WEB_ANSWER_SEC = 5.0
WEB_SILENT_LOOKS = 6
"""Looks, not time: a machine that slept for a night has a web process that is as well as before."""
PROJECT_ROOT = Path(__file__).resolve().parents[1]


class StartFailed(Exception):
    """A child that never came up; the text is for the person at the terminal."""


@dataclass(slots=True)
class Child:
    """One process that is started again whenever it ends. ``command`` is a whole argument list."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: datetime | None = None
    starts: int = 0

    def start(self, *, now: datetime, descriptors: tuple[int, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [shutil.which("setpriv") or "setpriv", "--pdeathsig", "TERM", "--", *self.command],
            cwd=PROJECT_ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,
        )
        self.started_at = now
        self.starts += 1

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self, *, wait_sec: float = STOP_WAIT_SEC) -> None:
        """End it cleanly; whatever of its group is left after ``wait_sec`` is killed."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=wait_sec)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # it led its own group
        except ProcessLookupError:
            return  # nobody was left, as it should be


class Supervisor:
    """Keeps its children running until it is told to stop.

    ``last_cluster_tick`` tells when the cluster last ticked: one that is up and silent for longer than
    ``TICK_SILENCE`` has wedged and is replaced. So is a web process that, look after look, answers nothing to
    ``web_answers``, which is asked with the port it listens on.
    """

    def __init__(
        self,
        *,
        web: Child,
        cluster: Child | None,
        say: Callable[[str], None],
        now: Callable[[], datetime],
        last_cluster_tick: Callable[[], datetime | None],
        web_answers: Callable[[int], bool],
    ) -> None:
        self._web = web
        self._cluster = cluster
        self._say = say
        self._now = now
        self._last_cluster_tick = last_cluster_tick
        self._web_answers = web_answers
        self._port: int | None = None
        self._web_looked_at: datetime | None = None
        self._silent_looks = 0
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True

    def start_web(self) -> int:
        """Start the web process and return the port it listens on. Raises StartFailed."""
        read_end, write_end = os.pipe()
        try:
            command = self._web.command
            self._web.command = [*command, "--ready-fd", str(write_end)]
            try:
                self._web.start(now=self._now(), descriptors=(write_end,))
            except FileNotFoundError as missing:
                raise StartFailed("setpriv is missing. Get it: sudo apt-get install util-linux") from missing
            finally:
                os.close(write_end)  # its end must be the child's alone, so that a dead child is noticed
            port = _listening_port(_read_line(read_end, timeout_sec=START_WAIT_SEC))
            # A restart keeps the port, also one that the system chose, and has nobody to tell.
            self._web.command = [*command, "--port", str(port)]
            self._port = port
        finally:
            os.close(read_end)
        return port

    def run(self, *, pause: Callable[[float], None] = time.sleep) -> None:
        """Watch until ``stop`` is called, then end cluster and web."""
        if self._cluster is not None:
            self._cluster.start(now=self._now())
        try:
            while not self._stopping:
                self.look_once()
                pause(1.0)
        finally:
            self.end()

    def look_once(self) -> None:
        """One look: restart what ended, replace a cluster that stopped ticking."""
        for child in (self._web, self._cluster):
            if child is None or not child.has_ended:
                continue
            code = child.process.returncode if child.process is not None else None
            if child.started_at is not None and self._now() - child.started_at < timedelta(
                seconds=RESTART_AFTER_SEC
            ):
                continue  # it fell over at once: not in a tight circle
            self._say(f"{child.name} ended (exit code {code}); starting it again.")
            child.stop(wait_sec=0)
            child.start(now=self._now())
        if self._web_is_silent():
            self._say(f"The web process hasn't answered {WEB_SILENT_LOOKS} times in a row; replacing it.")
            self._web.stop()
            self._web.start(now=self._now())
        if self._cluster is not None and self._cluster_is_silent(self._cluster):
            self._say(f"The cluster hasn't ticked for {TICK_SILENCE.seconds} s; replacing it.")
            self._cluster.stop()
            self._cluster.start(now=self._now())

    def _web_is_silent(self) -> bool:
        now = self._now()
        if self._port is None or self._web.has_ended:
            self._silent_looks = 0
            return False
        if self._web_looked_at is not None and now - self._web_looked_at < WEB_LOOK:
            return False
        self._web_looked_at = now
        self._silent_looks = 0 if self._web_answers(self._port) else self._silent_looks + 1
        if self._silent_looks < WEB_SILENT_LOOKS:
            return False
        self._silent_looks = 0
        return True

    def _cluster_is_silent(self, cluster: Child) -> bool:
        if cluster.started_at is None:
            return False
        ticked = self._last_cluster_tick()
        latest = max(cluster.started_at, ticked) if ticked is not None else cluster.started_at
        return self._now() - latest > TICK_SILENCE

    def end(self) -> None:
        for child in (self._cluster, self._web):
            if child is not None:
                child.stop()


def answers(host: str, port: int) -> bool:
    """Whether something there speaks HTTP within ``WEB_ANSWER_SEC``; what it says doesn't matter."""
    wire = http.client.HTTPConnection(host, port, timeout=WEB_ANSWER_SEC)
    try:
        wire.request("GET", "/healthz")
        wire.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        wire.close()
    return True


def _listening_port(line: bytes) -> int:
    if not line:
        raise StartFailed("The web process ended before it listened; what it said stands above.")
    message = json.loads(line)
    if "error" in message:
        raise StartFailed(f"{message['error']}\nFree the port, or choose another: halo up --port 8001")
    return int(message["port"])


def halo(*arguments: str) -> list[str]:
    """The command line of a Halo command in this installation."""
    return [sys.executable, "-m", "halo_site", *arguments]


def _read_line(descriptor: int, *, timeout_sec: float) -> bytes:
    """The first line from a pipe; empty at its end or after ``timeout_sec``."""
    data = b""
    deadline = time.monotonic() + timeout_sec
    while not data.endswith(b"\n"):
        readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return b""
        piece = os.read(descriptor, 4096)
        if not piece:
            return b""
        data += piece
    return data
