"""``/ws/``: what a page follows live. Frames are typed in ``core.frames`` and described in docs/websocket.md.

Close codes: 1008 flood, 1009 frame too large, 1011 the database doesn't answer, 4401 not logged in any more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error as AnyDatabaseError

from core.db.hub import ReloadNeeded, Subscription, hub, in_thread
from core.frames import (
    MAX_FRAME_BYTES,
    MAX_FRAMES_PER_SEC,
    BadFrameError,
    Error,
    Ping,
    Pong,
    Reload,
    Subscribe,
    Subscribed,
    read_client_frame,
)
from halo_site.socket_access import VIEW, caller_of, is_let_in
from sessions_app.consumers import ChatFrames

if TYPE_CHECKING:
    from core.db.callers import Caller

ACCESS_CHECK_SEC = 60.0

logger = logging.getLogger(__name__)


class LiveConsumer(AsyncWebsocketConsumer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._arrivals: deque[float] = deque(maxlen=MAX_FRAMES_PER_SEC)
        self._arrived: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._subscription: Subscription | None = None
        self._sender: asyncio.Task[None] | None = None
        self._access: asyncio.Task[None] | None = None
        self._chat = ChatFrames(self.send)
        self._closed = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """However the connection ends, a server that cancels included, nothing of it stays."""
        taking_in = asyncio.create_task(self._take_in(receive))
        try:
            await super().__call__(scope, self._arrived.get, send)
        finally:
            taking_in.cancel()
            self._end()

    async def _take_in(self, receive: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Frames are counted as they come: answered one by one, a flood of slow ones would look like none."""
        while True:
            message = await receive()
            if message["type"] != "websocket.receive" or not self._is_flood():
                self._arrived.put_nowait(message)
            elif not self._closed:
                await self._close(1008)

    async def connect(self) -> None:
        """A refusal is HTTP 403: whoever isn't let in learns nothing."""
        if not await in_thread(partial(is_let_in, self.scope)):
            await self.close()
            return
        await self.accept()
        self._access = asyncio.create_task(self._check_access())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._closed:
            return
        if len((text_data or "").encode("utf-8", "replace") or bytes_data or b"") > MAX_FRAME_BYTES:
            await self._close(1009)
        elif text_data is None:
            await self._refuse("Frames are text.")
        else:
            await self._answer(text_data)

    async def _answer(self, text: str) -> None:
        try:
            frame = read_client_frame(text)
        except BadFrameError as error:
            await self._refuse(str(error))
            return
        if isinstance(frame, Ping):
            await self.send(Pong().to_text())
            return
        try:
            caller = await self._caller()
            if caller is None:
                await self._close(4401)
            elif isinstance(frame, Subscribe):
                await self._subscribe(frame, caller)
            else:
                await self._chat.answer(frame, caller)
        except AnyDatabaseError:
            logger.exception("A frame can't be answered; the client connects again.")
            await self._close(1011)

    async def _subscribe(self, frame: Subscribe, caller: Caller) -> None:
        self._unsubscribe()
        if not await in_thread(partial(caller.may, VIEW)):
            await self._forbid()
            return
        try:
            subscription = await hub().subscribe(frame.topics, since=frame.since)
        except ReloadNeeded as needed:
            await self.send(Reload(reason=needed.reason).to_text())
            return
        self._subscription = subscription
        for text in subscription.missed:
            await self.send(text)
        subscription.missed.clear()
        await self.send(Subscribed(topics=frame.topics, last=subscription.last.event_id).to_text())
        self._sender = asyncio.create_task(self._send_events(subscription))

    async def _send_events(self, subscription: Subscription) -> None:
        while (text := await subscription.next()) is not None:
            await self.send(text)
        hub().unsubscribe(subscription)
        await self.send(Reload(reason="too_slow").to_text())

    async def _check_access(self) -> None:
        """A login that ended, or a permission taken away, ends what it had opened."""
        while True:
            await asyncio.sleep(ACCESS_CHECK_SEC)
            try:
                caller = await self._caller()
                if caller is None:
                    await self._close(4401)
                    return
                if self._subscription is not None and not await in_thread(partial(caller.may, VIEW)):
                    self._unsubscribe()
                    await self._forbid()
                await self._chat.check(caller)
            except AnyDatabaseError:
                logger.exception("A socket's permissions can't be checked; it is closed.")
                await self._close(1011)
                return

    async def _caller(self) -> Caller | None:
        return await in_thread(partial(caller_of, self.scope))

    async def _forbid(self) -> None:
        text = f"You may not look at what is shown here; an administrator can give the permission {VIEW}."
        await self.send(Error(code="forbidden", message=text).to_text())

    async def _refuse(self, why: str) -> None:
        await self.send(Error(code="bad_frame", message=why).to_text())

    def _is_flood(self) -> bool:
        now = time.monotonic()
        full = len(self._arrivals) == MAX_FRAMES_PER_SEC
        flood = full and now - self._arrivals[0] < 1.0
        self._arrivals.append(now)
        return flood

    async def _close(self, code: int) -> None:
        self._closed = True
        self._unsubscribe()
        self._chat.end()
        await self.close(code)

    def _end(self) -> None:
        self._closed = True
        self._unsubscribe()
        self._chat.end()
        if self._access is not None:
            self._access.cancel()

    def _unsubscribe(self) -> None:
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
        if self._subscription is not None:
            hub().unsubscribe(self._subscription)
            self._subscription = None
