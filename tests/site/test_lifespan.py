"""Under another ASGI server (uvicorn): its word for start and end has sessions worked, and landed."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from django.db import connections

from core import clock
from sessions_app import queue
from sessions_app.logs import read_session
from sessions_app.places import log_folder, log_leaf
from tests.site.chat_world import make_session
from tests.site.web_world import PATIENCE_SEC, ROOT, environment, in_rest, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

SERVER = textwrap.dedent("""
    import asyncio
    import sys

    async def serve():
        from halo_site.asgi import application

        said, told = asyncio.Queue(), asyncio.Queue()
        lifespan = asyncio.create_task(application({"type": "lifespan"}, said.get, told.put))
        for word in ("startup", "shutdown"):
            said.put_nowait({"type": f"lifespan.{word}"})
            print((await told.get())["type"], flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        await lifespan

    asyncio.run(serve())
""")


def test_a_server_that_speaks_lifespan_works_sessions(tmp_path: Path) -> None:
    session = make_session(tmp_path / "ws")
    queue.accept(session=session, text="Hello, who are you?", now=clock.now())
    connections.close_all()

    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=ROOT,
        env=environment(tmp_path / "home"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdin is not None and server.stdout is not None
            assert server.stdout.readline() == "lifespan.startup.complete\n"
            until(lambda: in_rest(session))
            server.stdin.write("\n")
            server.stdin.flush()
            assert server.stdout.readline() == "lifespan.shutdown.complete\n"
            server.stdin.close()
            assert server.wait(PATIENCE_SEC) == 0
        finally:
            server.kill()

    ui, _ = read_session(log_folder(session), log_leaf(session))
    assert [row["role"] for row in ui.rows] == ["user", "assistant"]
