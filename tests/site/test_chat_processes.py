"""Conversations across processes: a web process killed in the middle of a reply, a session worked by another one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.providers.testing import ScriptedServer, Step, text
from sessions_app.logs import read_ui
from tests.postgres import free_port
from tests.site.chat_world import ChatView
from tests.site.test_live_killed import ROOT, _environment, _running, _web
from tests.socket_client import SocketClient

pytestmark = pytest.mark.timeout(300)

PATIENCE_SEC = 90
VIEWS = 8
WORDS = [f"word{number} " for number in range(2_000)]


def slowly(pieces: Sequence[str], *, pause_sec: float) -> Step:
    """A streamed reply that takes its time; ended early when the test is over."""

    def step(handler: Any) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
            if handler.scripted.closing.wait(pause_sec):
                return
        handler.end_reply("stop", (10, 5))

    return step


class Follower:
    """What the page's script does: connect, say where it stands, take what comes; again whenever it breaks."""

    def __init__(self, *, cookie: str, session: str, port: int) -> None:
        self.view = ChatView()
        self.frames: list[dict[str, Any]] = []
        self._cookie, self._session, self._port = cookie, session, port
        self._client: SocketClient | None = None

    async def run(self) -> None:
        while True:
            try:
                self._client = await SocketClient.connect(port=self._port, cookie=self._cookie)
                self.view.catching_up = True
                self.send("subscribe", after=self.view.after)
                while True:
                    frame = await self._client.frame()
                    self.frames.append(frame)
                    self.view.take(frame)
            except (OSError, RuntimeError, asyncio.IncompleteReadError):
                self._client = None
                await asyncio.sleep(0.05)

    def send(self, kind: str, **fields: Any) -> None:
        assert self._client is not None
        self._client.send({"type": f"chat:{kind}", "session": self._session, **fields})

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    def stamps(self) -> list[str]:
        return [frame["stamp"] for frame in self.frames if frame["type"] == "chat:ack"]

    def kinds(self) -> list[str]:
        return [frame["type"] for frame in self.frames]


async def prepared(root: Path, endpoint: str) -> tuple[str, str]:
    """The cookie of an administrator, and the id of a session whose agent asks the scripted server."""
    model = f"model: {{provider: openai-compatible, id: m, endpoint: '{endpoint}'}}\n"
    process = await _running(f"""
        from pathlib import Path
        from django.core.management import call_command
        call_command("migrate", verbosity=0)
        from django.contrib.auth.models import User
        from tests.site.chat_world import make_session
        from tests.site.live_world import cookie_of
        session = make_session(Path({str(root)!r}), model={model!r})
        print(json.dumps([cookie_of(User.objects.create_superuser("rita")), session.pk]))
    """)
    cookie, session = json.loads((await process.communicate())[0])
    return cookie, session


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SEC
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def said(row: dict[str, Any]) -> str:
    return str(row["text"]) if "text" in row else "".join(block.get("text", "") for block in row["blocks"])


async def test_a_web_process_killed_in_the_middle_of_a_reply_costs_no_view_a_row(
    halo_home: Path, tmp_path: Path
) -> None:
    with ScriptedServer([slowly(WORDS, pause_sec=0.02), text("Back again."), text("Spare.")]) as server:
        cookie, session = await prepared(tmp_path / "workspace", server.endpoint)
        log = tmp_path / "workspace" / ".halo" / "sessions" / "helper" / f"{session}.ui.jsonl"
        port = free_port()
        followers = [Follower(cookie=cookie, session=session, port=port) for _ in range(VIEWS)]
        tasks = [asyncio.create_task(follower.run()) for follower in followers]
        with _web(port) as web:
            await until(lambda: all("chat:subscribed" in each.kinds() for each in followers))
            followers[0].send("send", client_id="c1", text="Count")
            # Long enough that the log has the growing reply as well.
            await until(lambda: all(len("".join(each.view.streamed.values())) > 600 for each in followers))
            web.kill()
            web.wait()
        await until(lambda: not any(each.is_connected for each in followers))
        with _web(port):
            await until(lambda: all("Back again." in map(said, each.view.rows) for each in followers))
            followers[0].send("send", client_id="c1", text="Count")
            await until(lambda: len(followers[0].stamps()) == 2)
            await until(lambda: all("chat:complete" in each.kinds() for each in followers))
            # Whatever still was on its way has arrived when every view stands at the log's end.
            await until(lambda: all(each.view.after == read_ui(log).seq for each in followers))
        for task in tasks:
            task.cancel()

    rows = read_ui(log).rows
    assert [each.view.rows for each in followers if each.view.rows != rows] == []
    assert len({row["id"] for row in rows}) == len(rows)
    assert said(rows[0]) == "Count"
    assert (rows[1]["status"], said(rows[1])[:12]) == ("interrupted", "word0 word1 ")
    assert [said(row) for row in rows].count("Count") == 1
    assert len(set(followers[0].stamps())) == 1
    assert len(server.requests) == 2


async def test_a_session_that_halo_chat_works_is_followed_live(halo_home: Path, tmp_path: Path) -> None:
    words = WORDS[:150]
    with ScriptedServer([slowly(words, pause_sec=0.02)]) as server:
        cookie, session = await prepared(tmp_path / "workspace", server.endpoint)
        port = free_port()
        follower = Follower(cookie=cookie, session=session, port=port)
        task = asyncio.create_task(follower.run())
        with _web(port):
            await until(lambda: "chat:subscribed" in follower.kinds())
            chat = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "halo_site", "chat"),
                *("-w", str(tmp_path / "workspace"), "-s", session, "Count"),
                cwd=ROOT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
            output, _ = await chat.communicate()
            await until(lambda: "chat:complete" in follower.kinds())
        task.cancel()

    assert chat.returncode == 0
    assert output.decode().split() == "".join(words).split()
    assert [said(row) for row in follower.view.rows] == ["Count", "".join(words)]
    kinds = follower.kinds()
    growing = [index for index, kind in enumerate(kinds) if kind == "chat:stream"]
    assert len(growing) >= 2
    assert kinds.index("chat:working") < growing[-1] < kinds.index("chat:assistant")
