"""What only several writers at once and a real channel layer can show; ``test_live_scaled`` runs it."""

from __future__ import annotations

import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from channels.layers import channel_layers
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction

from core.db import events, follower
from core.db.models import record_event
from tests.postgres import free_port
from tests.site.live_world import NOW, cookie_of, make_user, opened, write, written, written_elsewhere
from tests.valkey import valkey_server

pytestmark = pytest.mark.django_db(transaction=True)


class SlowWriter(threading.Thread):
    """Has a transaction with an event open until it is let go."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.wrote = threading.Event()
        self.go = threading.Event()
        self.event_id = 0

    def run(self) -> None:
        with transaction.atomic():
            self.event_id = record_event(
                kind="evolution:run_changed", object_id="slow", workspace_id=None, payload={}, now=NOW
            ).pk
            self.wrote.set()
            self.go.wait(60)
        connection.close()


def test_nothing_is_read_past_a_transaction_that_still_runs() -> None:
    """It took the lower id and commits last: a reader that went by ids would have gone past it."""
    slow = SlowWriter()
    slow.start()
    assert slow.wrote.wait(20)
    [fast] = write()

    start = events.latest()
    assert events.read_after(start, limit=10) == []
    slow.go.set()
    slow.join(20)

    assert [event.pk for event in events.read_after(start, limit=10)] == [slow.event_id, fast]


def test_the_order_is_that_of_transactions_not_of_ids() -> None:
    """The older transaction takes the higher id; whoever stands at the lower one still gets what is after it."""
    slow = SlowWriter()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()")
        slow.start()
        assert slow.wrote.wait(20)
        slow.go.set()
        slow.join(20)
        assert events.read_after(events.START, limit=10) == []
        late = record_event(
            kind="evolution:run_changed", object_id="late", workspace_id=None, payload={}, now=NOW
        ).pk
    assert late > slow.event_id

    assert [event.pk for event in events.read_after(events.START, limit=10)] == [late, slow.event_id]
    position = events.find_position(late)
    assert position is not None
    assert [event.pk for event in events.read_after(position, limit=10)] == [slow.event_id]
    assert events.latest().event_id == slow.event_id


@pytest.fixture
def cookie(transactional_db: None) -> str:
    rita: User = make_user("rita", may_view=True)
    return cookie_of(rita)


async def test_notices_of_other_processes_arrive_over_the_layer(
    cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no look at the table of its own for an hour, the follower hears of it all the same."""
    monkeypatch.setattr(follower, "INTERVAL_SEC", 3600.0)
    async with opened(cookie) as socket:
        await socket.subscribe("evolution")
        ids = await written_elsewhere(3)

        assert await socket.see(ids[-1]) == ids


async def test_events_come_though_the_layer_is_gone_and_when_it_is_back(
    cookie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    layers = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [f"redis://127.0.0.1:{port}/0"]},
        }
    }
    monkeypatch.setattr(settings, "CHANNEL_LAYERS", layers)
    monkeypatch.setattr(channel_layers, "backends", {})
    async with AsyncExitStack() as stack:
        with valkey_server(tmp_path, port=port):
            socket = await stack.enter_async_context(opened(cookie))
            await socket.subscribe("evolution")
            first = await written(3)
            await socket.see(first[-1])
        away = await written(3)
        assert await socket.see(away[-1]) == first + away
        with valkey_server(tmp_path, port=port):
            back = await written(3)
            assert await socket.see(back[-1]) == first + away + back
            await stack.aclose()
            await channel_layers["default"].flush()
