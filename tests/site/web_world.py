"""Real web processes on the test's database, and a model on loopback that can be held at each stage of a turn."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.db import connection, connections

from agents.providers.testing import ScriptedServer, Step, text, tool_calls
from sessions_app import lease, queue
from sessions_app.models import Session

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SEC = 60.0
_QUESTION = re.compile(r"\bq\d+\b")


def until(condition: Callable[[], bool], *, within_sec: float = PATIENCE_SEC) -> None:
    deadline = time.monotonic() + within_sec
    while not condition():
        assert time.monotonic() < deadline, "it didn't come to that"
        time.sleep(0.02)


def in_rest(session: Session) -> bool:
    return not queue.waiting(session.pk) and lease.live_holder(session.pk) is None


@dataclass(frozen=True)
class Web:
    """A web process that listens."""

    process: subprocess.Popen[bytes]
    port: int
    token: str

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SEC)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            wire.request(method, f"/api{path}", "" if body is None else json.dumps(body), headers)
            answer = wire.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            wire.close()

    def say(self, session: Session, question: str) -> str:
        """The stamp of the message that was acknowledged; its client id is the question."""
        path = f"/sessions/{session.pk}/messages"
        status, answer = self.call("POST", path, {"clientId": question, "text": f"answer {question}"})
        assert status == 202, answer
        return str(answer["stamp"])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def web(home: Path, token: str) -> Iterator[Web]:
    connections.close_all()
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "halo_site", "web", "--port", "0", "--ready-fd", str(write)],
        cwd=ROOT,
        env=environment(home),
        pass_fds=[write],
    )
    os.close(write)
    try:
        with os.fdopen(read) as lines:
            port = json.loads(lines.readline())["port"]
        yield Web(process, port, token)
    finally:
        process.kill()
        process.wait()


def environment(home: Path) -> dict[str, str]:
    """Of a web process on the test's database."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "halo_site.settings.web",
        "DATABASE_URL": _database_url(),
        "HALO_HOME": str(home),
    }


def _database_url() -> str:
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    url = urlsplit(os.environ["HALO_TEST_DATABASE_URL"])
    return url._replace(path=f"/{name}").geturl()


STAGES = ("call", "command", "second call", "answer", "end")
"""Of a turn: the model was asked; its command runs; it was asked again; it has begun to answer; it has ended."""


@dataclass
class _Gate:
    """The turn waits in ``stage`` until it is let go on; ``reached`` when it is there."""

    stage: str
    reached: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)


class Mind(ScriptedServer):
    """Runs one command, then answers every question that stands unanswered in the conversation it is shown."""

    def __init__(self, folder: Path, command: str = "sleep 0.1") -> None:
        super().__init__([])
        self.folder = folder
        self.command = command
        self.answered: list[str] = []
        self.at_once = 0
        """The most requests of one conversation that were open at the same time."""
        self._gate: _Gate | None = None
        self._open: dict[str, int] = {}

    def hold(self, stage: str) -> _Gate:
        self._gate = _Gate(stage)
        return self._gate

    def next_step(self, body: dict[str, Any]) -> Step:
        with self._lock:
            self.requests.append(body)
        messages = body["messages"]
        said = [_text(message) for message in messages if message["role"] == "user"]
        asked = _QUESTION.findall(" ".join(said))
        done = _QUESTION.findall(
            " ".join(_text(message) for message in messages if message["role"] == "assistant")
        )
        wanted = [question for question in dict.fromkeys(asked) if question not in done]
        step = self._answer(wanted) if messages[-1]["role"] == "tool" else self._command()
        return self._counted(step, conversation=said[0])

    def _command(self) -> Step:
        self._wait("call")
        marker = self.folder / "marker"
        marker.unlink(missing_ok=True)
        held = self._gate is not None and self._gate.stage == "command"
        if held:
            threading.Thread(target=self._see, args=(marker,), daemon=True).start()
        command = f"touch {marker}; {'sleep 3' if held and self.command == 'sleep 0.1' else self.command}"
        return tool_calls(("shell_exec", {"command": command}))

    def _see(self, marker: Path) -> None:
        until(marker.exists)
        self._wait("command")

    def _answer(self, wanted: Sequence[str]) -> Step:
        self._wait("second call")
        whole = text(*(f"Done: {question}. " for question in wanted or ["nothing"]))

        def step(handler: Any) -> None:
            gate = self._gate
            if gate is not None and gate.stage == "answer":
                handler.start_stream()
                gate.reached.set()
                while not gate.open.wait(0.05):  # more than one piece, so that the log has a part of it
                    handler.chunk({"content": "I begin. "})
                handler.start_stream = lambda: None
            whole(handler)
            self._wait("end", stays=False)

        return step

    def _wait(self, stage: str, *, stays: bool = True) -> None:
        gate = self._gate
        if gate is None or gate.stage != stage or gate.open.is_set():
            return
        gate.reached.set()
        if stays:
            assert gate.open.wait(PATIENCE_SEC)

    def _counted(self, step: Step, *, conversation: str) -> Step:
        def counted(handler: Any) -> None:
            with self._lock:
                self._open[conversation] = self._open.get(conversation, 0) + 1
                self.at_once = max(self.at_once, self._open[conversation])
            try:
                step(handler)
            finally:
                with self._lock:
                    self._open[conversation] -= 1

        return counted


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content)


def write_agent(folder: Path, mind: Mind) -> None:
    """The agent ``helper``, whose model is ``mind``."""
    agent = folder / ".halo" / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text("You help.\n")
    (agent / "agent.yaml").write_text(
        "name: Helper\ntools: [shell_exec]\n"
        f"model: {{provider: openai-compatible, id: test-model, endpoint: '{mind.endpoint}'}}\n"
    )
