"""Sockets without a server, somebody to hold them, and events from here and from another process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.test import Client

from core.db.hub import in_thread
from core.db.models import record_event

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
PATIENCE_SEC = 20


def make_user(name: str, *, may_view: bool) -> User:
    user = User.objects.create_user(name)
    if may_view:
        kind = ContentType.objects.get(app_label="workspaces", model="workspace")
        permission, _ = Permission.objects.get_or_create(
            content_type=kind, codename="view", defaults={"name": "Can see"}
        )
        user.user_permissions.add(permission)
    return user


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


AnySocket = TypeVar("AnySocket", bound="Socket")


class Socket(WebsocketCommunicator):
    """Frames as values; ``seen`` holds the ids of all events that arrived."""

    def __init__(
        self,
        cookie: str | None,
        *,
        path: str = "/ws/",
        host: str = "testserver",
        origin: str | None = "http://testserver",
        token: str | None = None,
        authorization: str | None = None,
    ) -> None:
        from halo_site.asgi import application

        headers = [(b"host", host.encode())]
        headers += [] if origin is None else [(b"origin", origin.encode())]
        headers += [] if cookie is None else [(b"cookie", cookie.encode())]
        if token is not None:
            authorization = f"Bearer {token}"
        headers += [] if authorization is None else [(b"authorization", authorization.encode())]
        super().__init__(application, path, headers=headers)
        self.seen: list[int] = []

    async def frame(self) -> dict[str, Any]:
        value: dict[str, Any] = await self.receive_json_from(timeout=PATIENCE_SEC)
        if value["type"] == "event":
            self.seen.append(value["id"])
        return value

    async def frame_of(self, kind: str) -> dict[str, Any]:
        """The next frame of this type; events before it are kept in ``seen``."""
        while True:
            value = await self.frame()
            if value["type"] == kind:
                return value
            assert value["type"] == "event", value

    async def subscribe(self, *topics: str, since: int | None = None) -> dict[str, Any]:
        await self.send_json_to({"type": "subscribe", "topics": list(topics), "since": since})
        return await self.frame_of("subscribed")

    async def see(self, last: int) -> list[int]:
        """Wait for the event ``last``; returns the ids of all that came until then."""
        while not self.seen or self.seen[-1] != last:
            frame = await self.frame()
            assert frame["type"] == "event", frame
        return self.seen

    async def closed(self) -> int:
        """The code it is closed with; frames before that are left out."""
        while True:
            output = await self.receive_output(timeout=PATIENCE_SEC)
            if output["type"] == "websocket.close":
                return int(output.get("code", 1000))


@asynccontextmanager
async def connected(socket: AnySocket) -> AsyncIterator[AnySocket]:
    is_let_in, _ = await socket.connect(timeout=PATIENCE_SEC)
    assert is_let_in
    try:
        yield socket
    finally:
        await socket.disconnect(timeout=PATIENCE_SEC)


def opened(cookie: str | None, **options: Any) -> AbstractAsyncContextManager[Socket]:
    return connected(Socket(cookie, **options))


def write(count: int = 1, *, kind: str = "evolution:run_changed", now: datetime = NOW) -> list[int]:
    """Each in a transaction of its own; returns the ids. A web process forgets those of ``NOW`` at its next tick."""
    return [_write_one(kind, number, now) for number in range(count)]


def _write_one(kind: str, number: int, now: datetime) -> int:
    with transaction.atomic():
        return record_event(
            kind=kind, object_id=f"row-{number}", workspace_id=None, payload={"to": "approved"}, now=now
        ).pk


async def written(count: int = 1, *, kind: str = "evolution:run_changed") -> list[int]:
    return await in_thread(lambda: write(count, kind=kind))


async def written_elsewhere(count: int) -> list[int]:
    """By another process, which shares nothing with this one but the database."""
    program = textwrap.dedent(
        f"""
        import django, json, sys
        from django.conf import settings
        django.setup()
        settings.DATABASES["default"]["NAME"] = {str(connection.settings_dict["NAME"])!r}
        from tests.site.live_world import write
        print(json.dumps(write({count})))
        """
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "halo_site.settings.web"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    ids: list[int] = json.loads(output)
    return ids
