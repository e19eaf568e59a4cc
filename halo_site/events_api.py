"""REST: what has changed, as a page of JSON or, for ``Accept: text/event-stream``, as it happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router, Schema

from core import clock
from core.db.events import find_position, latest, read_after
from core.db.hub import ReloadNeeded, hub, in_thread
from core.db.models import Event
from core.db.rest.auth import Caller, caller_of, guard
from core.db.rest.errors import ApiError, responses

router = Router(tags=["events"])
MAX_NUMBER = 2**63 - 1
MAX_EVENTS = 500
MAX_STREAMS = 64
STREAM_SEC = 600.0
LOOK_SEC = 15.0
TOPICS = frozenset({"evolution", "session", "settings"})

_open: set[object] = set()


class EventOut(Schema):
    id: int
    kind: str
    objectId: str
    workspace: int | None
    payload: dict[str, Any]
    createdAt: str


class EventPage(Schema):
    """``last`` is the next call's ``since``. ``reload``: what came after ``since`` isn't kept any more."""

    items: list[EventOut]
    last: int
    more: bool
    reload: bool


@router.get(
    "/events",
    response=responses(ok=EventPage),
    summary="Events after the last one seen; as server-sent events when they are accepted",
    **guard("view", "workspaces.view"),
)
def list_events(
    request: HttpRequest,
    since: int | None = Query(None, ge=0, le=MAX_NUMBER),
    limit: int = Query(100, ge=1, le=MAX_EVENTS),
) -> Any:
    if "text/event-stream" in request.headers.get("Accept", ""):
        return _streamed(request, since)
    if since is None:
        return {"items": [], "last": latest().event_id, "more": False, "reload": False}
    position = find_position(since)
    if position is None:
        return {"items": [], "last": latest().event_id, "more": False, "reload": True}
    found = read_after(position, limit=limit + 1)
    shown = found[:limit]
    return {
        "items": [_described(event) for event in shown],
        "last": shown[-1].pk if shown else since,
        "more": len(found) > limit,
        "reload": False,
    }


def _described(event: Event) -> dict[str, Any]:
    return {
        "id": event.pk,
        "kind": event.kind,
        "objectId": event.object_id,
        "workspace": event.workspace_id,
        "payload": event.payload,
        "createdAt": clock.stamp(event.created_at),
    }


def _streamed(request: HttpRequest, since: int | None) -> StreamingHttpResponse:
    if len(_open) >= MAX_STREAMS:
        raise ApiError(429, "too_many_streams", f"{MAX_STREAMS} event streams are open; close one first.")
    seen = request.headers.get("Last-Event-ID", "")
    if seen.isascii() and seen.isdecimal() and len(seen) < 19:
        since = int(seen)
    response = StreamingHttpResponse(_stream(caller_of(request), since), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


async def _stream(caller: Caller, since: int | None) -> AsyncIterator[bytes]:
    """Ends after ten minutes, or when the caller may no longer look; clients connect again by themselves."""
    token = object()
    _open.add(token)
    subscription = None
    try:
        yield b"retry: 2000\n\n"
        try:
            subscription = await hub().subscribe(TOPICS, since=since)
        except ReloadNeeded:
            yield b"event: reload\ndata: {}\n\n"
            return
        for text in subscription.missed:
            yield _message(text)
        loop = asyncio.get_running_loop()
        end = loop.time() + STREAM_SEC
        next_look = loop.time() + LOOK_SEC
        while (now := loop.time()) < end:
            if now >= next_look:
                if not await in_thread(caller.still_may):
                    return
                next_look = now + LOOK_SEC
                yield b": still here\n\n"
            try:
                next_text = await asyncio.wait_for(subscription.next(), timeout=next_look - now)
            except TimeoutError:
                continue
            if next_text is None:
                yield b"event: reload\ndata: {}\n\n"
                return
            yield _message(next_text)
    finally:
        _open.discard(token)
        if subscription is not None:
            hub().unsubscribe(subscription)


def _message(text: str) -> bytes:
    """``text`` is one line of JSON: line breaks within it are escaped."""
    return f"id: {json.loads(text)['id']}\ndata: {text}\n\n".encode()
