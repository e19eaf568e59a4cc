"""Events over REST: pages of JSON, and a stream that goes on from the last id and ends with its permission."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import AsyncClient, Client

from core import clock
from core.db.api_tokens import revoke
from core.db.models import ApiToken, Event, record_event
from halo_site import events_api
from tests.site.api_world import bearer, call, person, token_for

PATH = "/api/events"


def _record(name: str) -> Event:
    return record_event(
        kind="evolution:run_changed", object_id=name, workspace_id=None, payload={}, now=clock.now()
    )


def _secret() -> str:
    return token_for(person("reviewer"), "view")


def test_a_page_goes_on_where_the_last_one_ended(db: None) -> None:
    headers = bearer(_secret())
    events = [_record(f"row{number}") for number in range(5)]

    def ask(query: str) -> Any:
        return call(Client(), "GET", f"{PATH}?{query}", **headers).json()

    first = ask(f"since={events[0].pk}&limit=2")
    rest = ask(f"since={first['last']}")

    assert [item["objectId"] for item in first["items"]] == ["row1", "row2"]
    assert (first["more"], first["reload"]) == (True, False)
    assert [item["objectId"] for item in rest["items"]] == ["row3", "row4"]
    assert (rest["more"], rest["last"]) == (False, events[4].pk)
    assert ask("") == {"items": [], "last": events[4].pk, "more": False, "reload": False}


def test_what_is_no_longer_kept_asks_for_a_reload(db: None) -> None:
    headers = bearer(_secret())
    gone, kept = _record("gone"), _record("kept")
    Event.objects.filter(pk=gone.pk).delete()

    page = call(Client(), "GET", f"{PATH}?since={gone.pk}", **headers).json()

    assert page == {"items": [], "last": kept.pk, "more": False, "reload": True}


async def _open(secret: str, **headers: str) -> AsyncIterator[bytes]:
    answer = await AsyncClient().get(
        f"{PATH}?since=0", headers={**bearer(secret), "Accept": "text/event-stream", **headers}
    )
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream")
    assert answer["Halo-API-Version"] == "1"
    chunks: AsyncIterator[bytes] = aiter(answer.streaming_content)
    assert (await anext(chunks)).startswith(b"retry:")
    return chunks


async def _next(chunks: AsyncIterator[bytes]) -> dict[str, str]:
    text = (await asyncio.wait_for(anext(chunks), timeout=10)).decode()
    return dict(line.split(": ", 1) for line in text.strip().split("\n"))


@pytest.mark.django_db(transaction=True)
async def test_a_stream_tells_what_was_missed_and_then_what_happens() -> None:
    secret = await sync_to_async(_secret)()
    first = await sync_to_async(_record)("first")
    last_seen = {"Last-Event-ID": str(first.pk)}
    missed = await sync_to_async(_record)("missed")

    chunks = await _open(secret, **last_seen)
    told = await _next(chunks)
    live = await sync_to_async(_record)("live")
    then = await _next(chunks)
    waiting = asyncio.create_task(_next(chunks))
    await asyncio.sleep(0.1)
    waiting.cancel()  # as the server does when the reader has gone
    await asyncio.wait([waiting])

    assert (told["id"], then["id"]) == (str(missed.pk), str(live.pk))
    assert json.loads(then["data"])["object_id"] == "live"
    assert not events_api._open


@pytest.mark.django_db(transaction=True)
async def test_a_stream_ends_soon_after_its_token_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_api, "LOOK_SEC", 0.1)
    secret = await sync_to_async(_secret)()
    first = await sync_to_async(_record)("first")
    chunks = await _open(secret, **{"Last-Event-ID": str(first.pk)})
    assert (await asyncio.wait_for(anext(chunks), timeout=10)) == b": still here\n\n"

    token = await ApiToken.objects.aget()
    await sync_to_async(revoke)(token.pk, now=clock.now())

    await asyncio.wait_for(_until_the_end(chunks), timeout=10)
    assert not events_api._open


async def _until_the_end(chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        assert chunk == b": still here\n\n"


def _log_out(client: AsyncClient, user: User) -> None:
    client.logout()


def _expire(client: AsyncClient, user: User) -> None:
    Session.objects.update(expire_date=clock.now() - timedelta(seconds=1))


def _change_password(client: AsyncClient, user: User) -> None:
    user.set_password("another one 18")
    user.save()


def _deactivate(client: AsyncClient, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _take_permissions(client: AsyncClient, user: User) -> None:
    user.user_permissions.clear()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "ends",
    [_log_out, _expire, _change_password, _deactivate, _take_permissions],
    ids=lambda end: end.__name__,
)
async def test_a_stream_by_cookie_ends_with_the_login(
    ends: Callable[[AsyncClient, User], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_api, "LOOK_SEC", 0.1)
    client, user = AsyncClient(), await sync_to_async(person)("reviewer")
    await sync_to_async(client.force_login)(user, backend="django.contrib.auth.backends.ModelBackend")
    answer = await client.get(PATH, headers={"Accept": "text/event-stream"})
    chunks: AsyncIterator[bytes] = aiter(answer.streaming_content)
    assert (await anext(chunks)).startswith(b"retry:")
    for _ in range(2):
        assert (await asyncio.wait_for(anext(chunks), timeout=10)) == b": still here\n\n"

    await sync_to_async(ends)(client, user)

    await asyncio.wait_for(_until_the_end(chunks), timeout=10)
    assert not events_api._open


@pytest.mark.django_db(transaction=True)
async def test_a_stream_of_a_reader_who_missed_too_much_asks_for_a_reload() -> None:
    secret = await sync_to_async(_secret)()
    gone = await sync_to_async(_record)("gone")
    await sync_to_async(_record)("kept")
    await Event.objects.filter(pk=gone.pk).adelete()

    chunks = await _open(secret, **{"Last-Event-ID": str(gone.pk)})

    assert (await _next(chunks))["event"] == "reload"
    assert [chunk async for chunk in chunks] == []


def test_too_many_streams_are_refused(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_api, "MAX_STREAMS", 0)

    answer = call(Client(), "GET", PATH, **bearer(_secret()), Accept="text/event-stream")

    assert (answer.status_code, answer.json()["error"]) == (429, "too_many_streams")
