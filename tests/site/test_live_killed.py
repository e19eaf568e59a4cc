"""A web process killed under 500 sockets, which all come back at once: each has every event once and in order."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.postgres import free_port
from tests.socket_client import SocketClient

ROOT = Path(__file__).resolve().parents[2]
SOCKETS = 500
CHANCE = random.Random(17)  # noqa: S311 - a spread of moments, no secret

PREPARE = """
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User
    from django.test import Client
    client = Client()
    client.force_login(User.objects.create_superuser("rita"))
    from core import clock
    from tests.site.live_world import write
    print(json.dumps([client.cookies["sessionid"].value, write(now=clock.now())]))
"""
WRITE = """
    import sys, time
    from core import clock
    from tests.site.live_world import write
    ids = []
    for count in sys.stdin:
        for _ in range(int(count)):
            ids += write(now=clock.now())
            time.sleep(0.02)
    print(json.dumps(ids))
"""


@pytest.mark.timeout(300)
async def test_nothing_is_lost_and_nothing_comes_twice(halo_home: Path) -> None:
    """It is killed while events are written, which goes on while it is away, and once more when it is back."""
    prepared = await _running(PREPARE)
    cookie, [start] = json.loads((await prepared.communicate())[0])
    port = free_port()
    views = [View(f"sessionid={cookie}", start) for _ in range(SOCKETS)]

    with _web(port) as web:
        clients = [asyncio.create_task(view.follow(port)) for view in views]
        await _until(lambda: all(view.is_open for view in views), clients)
        writer = await _running(WRITE)
        assert writer.stdin is not None
        writer.stdin.write(b"30\n")
        await _until(lambda: all(view.seen[-1] > start for view in views), clients)
        web.kill()
        web.wait()
    with _web(port):
        ids = json.loads((await writer.communicate(b"5\n"))[0])
        await _until(lambda: all(view.seen[-1] >= ids[-1] for view in views), clients)
    for client in clients:
        client.cancel()

    assert len(ids) == 35
    assert [view.seen for view in views if view.seen != [start, *ids]] == []


class View:
    """``seen``: the ids of all events that arrived, in their order."""

    def __init__(self, cookie: str, start: int) -> None:
        self.seen = [start]
        self.is_open = False
        self._cookie = cookie

    async def follow(self, port: int) -> None:
        """What live.js does: connect, tell the last id, follow; again whenever it breaks, soon and not at once."""
        while True:
            try:
                client = await SocketClient.connect(port=port, cookie=self._cookie)
                await client.subscribe("evolution", since=self.seen[-1])
                self.is_open = True
                taken = 0
                while True:
                    self.seen += [number for number, _ in client.arrivals[taken:]]
                    taken = len(client.arrivals)
                    assert await client.receive() == "event"
            except (OSError, asyncio.IncompleteReadError):
                await asyncio.sleep(CHANCE.uniform(0.05, 0.3))


async def _until(condition: Callable[[], bool], clients: Sequence[asyncio.Task[None]]) -> None:
    while not condition():
        for client in clients:
            if client.done():
                client.result()  # what went wrong in it
        await asyncio.sleep(0.05)


async def _running(program: str) -> asyncio.subprocess.Process:
    head = "import json, django\ndjango.setup()\n"
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        head + textwrap.dedent(program),
        cwd=ROOT,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "halo_site.settings.web", "DATABASE_URL": ""}


@contextmanager
def _web(port: int) -> Iterator[subprocess.Popen[bytes]]:
    read, write = os.pipe()
    web = subprocess.Popen(
        [sys.executable, "-m", "halo_site", "web", "--port", str(port), "--ready-fd", str(write)],
        cwd=ROOT,
        env=_environment(),
        pass_fds=[write],
    )
    os.close(write)
    try:
        with os.fdopen(read) as lines:
            assert json.loads(lines.readline()) == {"port": port}
        yield web
    finally:
        web.kill()
        web.wait()
