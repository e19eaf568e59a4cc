"""Events: from a commit in one process through the web process to its sockets; embedded."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.measures import Measure, percentiles
from tests.socket_client import SocketClient

COMMITS = 100
SOCKETS = 500
EVENTS_TO_ALL = 20
SEED = 17


def measure() -> list[Measure]:
    return measures("embedded", commit_limit=300.0)


def measures(profile: str, *, commit_limit: float) -> list[Measure]:
    cookie = _prepare()
    with _web() as port:
        one = asyncio.run(_to_one(port, cookie))
        whole, spread, lost = asyncio.run(_to_all(port, cookie))
    return [
        Measure(
            what=f"a commit in another process to the socket, {profile}",
            unit="ms",
            figures=percentiles(one, scale=1e3),
            at_most={"p95": commit_limit},
        ),
        Measure(
            what=f"one event to {SOCKETS} sockets, from the commit in another process, {profile}",
            unit="ms",
            figures=percentiles(whole, scale=1e3),
            at_most={"p95": 300.0},
        ),
        Measure(
            what=f"of it from the first socket on, {profile}",
            unit="ms",
            figures=percentiles(spread, scale=1e3),
        ),
        Measure(
            what=f"lost or twice among {SOCKETS * EVENTS_TO_ALL:,}, {profile}",
            unit="",
            figures={"count": lost},
            at_most={"count": 0},
        ),
    ]


def _prepare() -> str:
    """Tables, somebody who may look, and their cookie."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "halo_site.settings.web"
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser("bench"))
    return f"sessionid={client.cookies['sessionid'].value}"


@contextmanager
def _web() -> Iterator[int]:
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "halo_site", "web", "--port", "0", "--ready-fd", str(write)],
        pass_fds=[write],
        stdout=sys.stderr,
    )
    os.close(write)
    try:
        with os.fdopen(read) as lines:
            yield int(json.loads(lines.readline())["port"])
    finally:
        process.terminate()
        process.wait(timeout=30)


async def _to_one(port: int, cookie: str) -> list[float]:
    """Commits at moments that have nothing to do with the looks at the table."""
    chance = random.Random(SEED)  # noqa: S311 - a spread of moments, no secret
    client = await SocketClient.connect(port=port, cookie=cookie)
    await client.subscribe("evolution")
    delays = []
    for _ in range(COMMITS):
        await asyncio.sleep(chance.uniform(0.02, 0.3))
        event_id, committed = await asyncio.to_thread(_commit)
        await client.receive_until(event_id)
        delays.append(client.arrivals[-1][1] - committed)
    client.close()
    return delays


async def _to_all(port: int, cookie: str) -> tuple[list[float], list[float], int]:
    """Delays of all arrivals since the commit, and since the first arrival; how many were lost or came twice."""
    clients = [await SocketClient.connect(port=port, cookie=cookie) for _ in range(SOCKETS)]
    await asyncio.gather(*(client.subscribe("evolution") for client in clients))
    chance = random.Random(SEED)  # noqa: S311 - a spread of moments, no secret
    whole, spread, wanted = [], [], []
    for _ in range(EVENTS_TO_ALL):
        await asyncio.sleep(chance.uniform(0.4, 0.8))
        event_id, committed = await asyncio.to_thread(_commit)
        wanted.append(event_id)
        await asyncio.gather(*(client.receive_until(event_id) for client in clients))
        arrived = [client.arrivals[-1][1] for client in clients]
        whole += [moment - committed for moment in arrived]
        spread += [moment - min(arrived) for moment in arrived]
    wrong = 0
    for client in clients:
        got = [number for number, _ in client.arrivals]
        wrong += abs(len(got) - len(wanted)) if got != wanted else 0
        wrong += got != wanted
        client.close()
    return whole, spread, wrong


def _commit() -> tuple[int, float]:
    """The event's id, and the moment of its commit: before the notice that a scaled installation sends."""
    from django.db import transaction

    from core.db.clock import database_now
    from core.db.models import record_event

    committed: list[float] = []
    with transaction.atomic():
        transaction.on_commit(lambda: committed.append(time.perf_counter()))
        event = record_event(
            kind="evolution:progress",
            object_id="01k0000000000000000000bench",
            workspace_id=None,
            payload={"kind": "run", "phase": "draft", "attempt": 1},
            now=database_now(),
        )
    return event.pk, committed[0]
