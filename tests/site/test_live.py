"""``/ws/``: who is let in, and that every event arrives once and in order, or the view is told to reload."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core.db import events, hub
from core.db.hub import in_thread
from core.db.models import Event
from core.frames import MAX_FRAME_BYTES, MAX_FRAMES_PER_SEC
from halo_site import consumers
from tests.site.live_world import (
    NOW,
    PATIENCE_SEC,
    Socket,
    cookie_of,
    make_user,
    opened,
    write,
    written,
    written_elsewhere,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rita(transactional_db: None) -> User:
    return make_user("rita", may_view=True)


@pytest.fixture
def cookie(rita: User) -> str:
    return cookie_of(rita)


@pytest.fixture(autouse=True)
def no_follower_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "follower":
            thread.join(PATIENCE_SEC)
            assert not thread.is_alive()


class TestTheDoor:
    @pytest.mark.parametrize(
        ("host", "origin"),
        [
            ("testserver", "http://evil.example"),
            ("testserver", "http://testserver:8001"),
            ("testserver", "https://testserver"),
            ("testserver", "http://testserver.evil.example"),
            ("testserver", "null"),
            ("testserver", "http://[broken"),
            ("testserver", None),
            ("evil.example", "http://evil.example"),
        ],
    )
    async def test_is_closed_to_other_origins(self, cookie: str, host: str, origin: str | None) -> None:
        connected, _ = await Socket(cookie, host=host, origin=origin).connect(timeout=PATIENCE_SEC)

        assert not connected

    @pytest.mark.parametrize("wrong", [None, "sessionid=made-up", "sessionid="])
    async def test_is_closed_to_strangers(self, db: None, wrong: str | None) -> None:
        connected, _ = await Socket(wrong).connect(timeout=PATIENCE_SEC)

        assert not connected

    async def test_is_closed_to_somebody_who_was_deactivated(self, rita: User, cookie: str) -> None:
        await in_thread(lambda: User.objects.filter(pk=rita.pk).update(is_active=False))

        connected, _ = await Socket(cookie).connect(timeout=PATIENCE_SEC)

        assert not connected

    async def test_leads_nowhere_else(self, cookie: str) -> None:
        connected, _ = await Socket(cookie, path="/ws/elsewhere").connect(timeout=PATIENCE_SEC)

        assert not connected

    async def test_a_standard_port_may_be_left_out(self, cookie: str) -> None:
        async with opened(cookie, host="testserver:80", origin="http://testserver"):
            pass

    async def test_without_the_permission_nothing_is_followed(self, transactional_db: None) -> None:
        paul = await in_thread(lambda: cookie_of(make_user("paul", may_view=False)))
        async with opened(paul) as socket:
            await socket.send_json_to({"type": "subscribe", "topics": ["evolution"], "since": 0})
            answer = await socket.frame()
            await written()
            await socket.send_json_to({"type": "__ping__"})

            assert (answer["type"], answer["code"]) == ("error", "forbidden")
            assert await socket.frame() == {"type": "__pong__"}

    async def test_a_permission_taken_away_ends_what_it_opened(self, rita: User, cookie: str) -> None:
        with mock.patch.object(consumers, "ACCESS_CHECK_SEC", 0.05):
            async with opened(cookie) as socket:
                await socket.subscribe("evolution")
                await in_thread(rita.user_permissions.clear)
                answer = await socket.frame()
                await written()
                await socket.send_json_to({"type": "__ping__"})

                assert (answer["type"], answer["code"]) == ("error", "forbidden")
                assert await socket.frame() == {"type": "__pong__"}

    async def test_a_login_that_ended_ends_the_socket(self, cookie: str) -> None:
        with mock.patch.object(consumers, "ACCESS_CHECK_SEC", 0.05):
            socket = Socket(cookie)
            await socket.connect(timeout=PATIENCE_SEC)
            await in_thread(lambda: _log_out(cookie))

            assert await socket.closed() == 4401
            await socket.disconnect(timeout=PATIENCE_SEC)


def _log_out(cookie: str) -> None:
    client = Client()
    client.cookies["sessionid"] = cookie.partition("=")[2]
    client.logout()


class TestDelivery:
    async def test_events_arrive_in_order_each_once(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.subscribe("evolution")
            ids = [*await written(30), *await written(30)]

            assert await socket.see(ids[-1]) == ids

    async def test_an_event_says_what_happened(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.subscribe("evolution")
            [number] = await written()

            assert await socket.frame() == {
                "type": "event",
                "id": number,
                "kind": "evolution:run_changed",
                "object_id": "row-0",
                "workspace_id": None,
                "payload": {"to": "approved"},
                "created_at": "2026-01-31T09:30:00Z",
            }

    async def test_other_topics_stay_away(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.subscribe("session")
            await written(5)
            [number] = await written(kind="session:changed")

            assert await socket.see(number) == [number]

    async def test_what_another_process_commits_arrives(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.subscribe("evolution")
            ids = await written_elsewhere(20)

            assert await socket.see(ids[-1]) == ids

    async def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.subscribe("evolution")
            first = await written(3)
            await socket.see(first[-1])
        missed = await written(4)

        async with opened(cookie) as socket:
            answer = await socket.subscribe("evolution", since=first[-1])
            assert socket.seen == missed
            assert answer["last"] == missed[-1]
            live = await written(2)
            assert await socket.see(live[-1]) == missed + live

    async def test_a_storm_of_reconnects_loses_nothing(self, cookie: str) -> None:
        """40 clients come and go while two writers, one of them another process, commit all the time."""
        start = (await written())[-1]
        done = asyncio.Event()

        async def client(seen: list[int], pause: float) -> None:
            while True:
                finished = done.is_set()
                async with opened(cookie) as socket:
                    await socket.subscribe("evolution", since=seen[-1])
                    if not finished:
                        await asyncio.sleep(pause)
                        while not await socket.receive_nothing(timeout=0.001):
                            await socket.frame()
                    seen += socket.seen
                if finished:
                    return

        views = [[start] for _ in range(40)]
        clients = [
            asyncio.create_task(client(seen, 0.01 + 0.005 * number)) for number, seen in enumerate(views)
        ]
        elsewhere = asyncio.create_task(written_elsewhere(60))
        for _ in range(20):
            await written(3)
        await elsewhere
        done.set()
        await asyncio.gather(*clients)

        wanted = await in_thread(lambda: [event.pk for event in events.read_after(events.START, limit=200)])
        assert sorted(wanted) == await in_thread(lambda: sorted(Event.objects.values_list("pk", flat=True)))
        assert len(wanted) == 121
        assert [seen for seen in views if seen != wanted] == []

    async def test_a_new_subscription_takes_the_place_of_the_old(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.subscribe("evolution")
            await socket.subscribe("session")
            await written()
            [number] = await written(kind="session:changed")

            assert await socket.see(number) == [number]

    async def test_the_process_joins_the_layers_group_once(
        self, cookie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many sockets it has: a layer copies to each member in turn."""
        joined: list[str] = []

        class Layer:
            async def new_channel(self) -> str:
                return "here"

            async def group_add(self, group: str, channel: str) -> None:
                joined.append(group)

            async def group_discard(self, group: str, channel: str) -> None:
                joined.remove(group)

            async def group_send(self, group: str, message: object) -> None:
                pass

            async def receive(self, channel: str) -> None:
                await asyncio.Event().wait()

        monkeypatch.setattr(hub, "_layer", Layer)
        async with opened(cookie) as one, opened(cookie) as other:
            for socket in (one, other):
                await socket.subscribe("evolution")
            [number] = await written()
            assert await one.see(number) == await other.see(number) == [number]
            assert joined == ["events"]

    async def test_the_last_to_go_ends_the_follower(self, cookie: str) -> None:
        async with opened(cookie) as one, opened(cookie) as other:
            await one.subscribe("evolution")
            await other.subscribe("evolution")
            assert hub.hub()._follower is not None
        assert hub.hub()._follower is None


class TestReload:
    async def _answer(self, cookie: str, since: int) -> dict[str, object]:
        async with opened(cookie) as socket:
            await socket.send_json_to({"type": "subscribe", "topics": ["evolution"], "since": since})
            return await socket.frame()

    async def test_what_is_not_kept_any_more(self, cookie: str) -> None:
        ids = await written(5)
        await in_thread(lambda: Event.objects.filter(pk__lte=ids[2]).delete())

        assert await self._answer(cookie, ids[0]) == {"type": "reload", "reason": "too_old"}

    async def test_a_position_of_another_database(self, cookie: str) -> None:
        ids = await written(2)

        assert await self._answer(cookie, ids[-1] + 1000) == {"type": "reload", "reason": "too_old"}

    async def test_more_than_a_view_should_catch_up_with(self, cookie: str) -> None:
        with mock.patch.object(hub, "REPLAY_LIMIT", 3):
            ids = await written(5)

            assert await self._answer(cookie, ids[0]) == {"type": "reload", "reason": "too_many"}
            assert (await self._answer(cookie, ids[1]))["id"] == ids[2]

    async def test_a_view_that_can_not_keep_up(self) -> None:
        with mock.patch.object(hub, "QUEUE_LENGTH", 3):
            slow = hub.Subscription(frozenset({"evolution"}))
        for number in range(1, 6):
            slow.put(hub.Delivery(events.Position(0, number), "evolution", str(number)))

        assert await slow.next() is None

    async def test_the_view_that_could_not_keep_up_is_told_and_can_subscribe_again(self, cookie: str) -> None:
        with mock.patch.object(hub, "QUEUE_LENGTH", 3):
            async with opened(cookie) as socket:
                await socket.subscribe("evolution")
                [subscription] = hub.hub()._subscriptions
                for number in range(5):
                    subscription.put(hub.Delivery(events.Position(0, 10**9 + number), "evolution", "{}"))

                assert await socket.frame() == {"type": "reload", "reason": "too_slow"}
                await socket.subscribe("evolution")
                [number] = await written()
                assert await socket.see(number) == [number]


class TestFrames:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            "null",
            "[" * 100_000,
            '{"type": "nonsense"}',
            '{"type": "subscribe"}',
            '{"type": "subscribe", "topics": []}',
            '{"type": "subscribe", "topics": ["everything"]}',
            '{"type": "subscribe", "topics": ["evolution"], "since": -1}',
            '{"type": "subscribe", "topics": ["evolution"], "since": "1"}',
            '{"type": "subscribe", "topics": ["evolution"], "since": 1e400}',
            '{"type": "subscribe", "topics": ["evolution"], "since": 9223372036854775808}',
            '{"type": "subscribe", "topics": ["evolution"], "more": 1}',
            '{"type": "__ping__", "<script>": "<script>"}',
            '{"type": "<script>"}',
            '{"type": "__ping__\ud800"}',
        ],
    )
    async def test_a_bad_frame_is_refused_and_the_connection_stays(self, cookie: str, text: str) -> None:
        async with opened(cookie) as socket:
            await socket.send_input({"type": "websocket.receive", "text": text})
            answer = await socket.frame()
            await socket.send_json_to({"type": "__ping__"})

            assert (answer["type"], answer["code"]) == ("error", "bad_frame")
            assert "<script>" not in answer["message"]
            assert await socket.frame() == {"type": "__pong__"}

    async def test_bytes_are_refused(self, cookie: str) -> None:
        async with opened(cookie) as socket:
            await socket.send_to(bytes_data=b'{"type": "__ping__"}')

            assert (await socket.frame())["code"] == "bad_frame"

    async def test_a_flood_closes(self, cookie: str) -> None:
        socket = Socket(cookie)
        await socket.connect(timeout=PATIENCE_SEC)
        for _ in range(MAX_FRAMES_PER_SEC + 1):
            await socket.send_json_to({"type": "__ping__"})

        assert await socket.closed() == 1008
        await socket.disconnect(timeout=PATIENCE_SEC)

    async def test_a_flood_closes_however_long_each_answer_takes(
        self, cookie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun: list[object] = []
        closed = threading.Event()

        def slowly(scope: object) -> None:
            begun.append(scope)
            closed.wait(PATIENCE_SEC)

        socket = Socket(cookie)
        await socket.connect(timeout=PATIENCE_SEC)
        monkeypatch.setattr(consumers, "caller_of", slowly)
        for _ in range(MAX_FRAMES_PER_SEC + 1):
            await socket.send_json_to({"type": "subscribe", "topics": ["session"]})

        code = await socket.closed()
        closed.set()
        await socket.disconnect(timeout=PATIENCE_SEC)

        assert code == 1008
        assert len(begun) <= 1  # the rest is left unanswered

    @pytest.mark.parametrize(("length", "code"), [(MAX_FRAME_BYTES, None), (MAX_FRAME_BYTES + 1, 1009)])
    async def test_a_frame_may_be_so_large(self, cookie: str, length: int, code: int | None) -> None:
        socket = Socket(cookie)
        await socket.connect(timeout=PATIENCE_SEC)
        frame = json.dumps({"type": "__ping__", "x": ""})
        await socket.send_to(text_data=frame[:-2] + "y" * (length - len(frame)) + frame[-2:])

        if code is None:
            assert (await socket.frame())["code"] == "bad_frame"
        else:
            assert await socket.closed() == code
        await socket.disconnect(timeout=PATIENCE_SEC)


class TestPruning:
    def test_rows_older_than_a_day_go_and_the_newest_stays(self) -> None:
        ids = write(5)

        assert events.prune(now=NOW + timedelta(days=1)) == 0
        assert events.prune(now=NOW + timedelta(days=1, seconds=1)) == 4
        assert list(Event.objects.values_list("pk", flat=True)) == [ids[-1]]
        assert events.find_position(ids[-1]) == events.latest()
        assert events.find_position(ids[-2]) is None

    def test_a_row_younger_than_its_neighbours_keeps_those_after_it(self) -> None:
        """Clocks differ: what a reader at the kept row has yet to see must not go before that row does."""
        ids = write(4)
        Event.objects.filter(pk=ids[1]).update(created_at=NOW + timedelta(hours=2))

        assert events.prune(now=NOW + timedelta(days=1, hours=1)) == 1
        assert list(Event.objects.order_by("id").values_list("pk", flat=True)) == ids[1:]

    def test_comes_in_batches(self) -> None:
        write(5)
        with mock.patch.object(events, "PRUNED_AT_ONCE", 3):
            assert events.prune(now=NOW + timedelta(days=2)) == 3
            assert events.prune(now=NOW + timedelta(days=2)) == 1
            assert events.prune(now=NOW + timedelta(days=2)) == 0
