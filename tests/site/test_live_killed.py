"""A web process killed under its sockets: whoever comes back has every event once and in order."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.postgres import free_port
from tests.socket_client import SocketClient

ROOT = Path(__file__).resolve().parents[2]
SOCKETS = 40
EVENTS = 120

PREPARE = """
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User
    from django.test import Client
    client = Client()
    client.force_login(User.objects.create_superuser("rita"))
    from tests.site.live_world import write
    print(json.dumps([client.cookies["sessionid"].value, write()]))
"""
WRITE = f"""
    import time
    from tests.site.live_world import write
    ids = []
    for _ in range({EVENTS}):
        ids += write()
        time.sleep(0.02)
    print(json.dumps(ids))
"""


@pytest.mark.timeout(300)
async def test_nothing_is_lost_and_nothing_comes_twice(halo_home: Path) -> None:
    prepared = await _running(PREPARE)
    cookie, [start] = json.loads((await prepared.communicate())[0])
    port = free_port()
    views: list[list[int]] = [[start] for _ in range(SOCKETS)]

    with _web(port) as web:
        clients = [asyncio.create_task(_follow(port, f"sessionid={cookie}", seen)) for seen in views]
        writer = await _running(WRITE)
        await _until_all_see(views, start + 1, writer)
        web.kill()
        web.wait()
    with _web(port):
        ids = json.loads((await writer.communicate())[0])
        await _until_all_see(views, ids[-1], None)
    for client in clients:
        client.cancel()

    assert all(seen == [start, *ids] for seen in views)


async def _follow(port: int, cookie: str, seen: list[int]) -> None:
    """What live.js does: connect, tell the last id, follow; again from the start whenever it breaks."""
    while True:
        try:
            client = await SocketClient.connect(port=port, cookie=cookie)
            await client.subscribe("evolution", since=seen[-1])
            taken = 0
            while True:
                seen += [number for number, _ in client.arrivals[taken:]]
                taken = len(client.arrivals)
                assert await client.receive() == "event"
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.02)


async def _until_all_see(
    views: list[list[int]], event_id: int, writer: asyncio.subprocess.Process | None
) -> None:
    while any(seen[-1] < event_id for seen in views):
        assert writer is None or writer.returncode in (None, 0)
        await asyncio.sleep(0.02)


async def _running(program: str) -> asyncio.subprocess.Process:
    head = "import json, django\ndjango.setup()\n"
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        head + textwrap.dedent(program),
        cwd=ROOT,
        env=_environment(),
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
