"""Fan-out: one follower for the process, one bounded queue for each view that is connected.

Every event loop has its own hub (a process has one loop). It follows while somebody is subscribed; the
first subscription starts the follower and joins the channel layer's group, the last one to go ends both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from core.db.events import START, Position, find_position, latest, position_of, read_after
from core.db.follower import Follower
from core.db.models import Event
from core.db.push import GROUP, add_reader, notice, remove_reader
from core.db.threads import DatabaseThreads
from core.frames import EventFrame

QUEUE_LENGTH = 1_000
REPLAY_LIMIT = 1_000
LAYER_RETRY_SEC = 5.0

logger = logging.getLogger(__name__)
in_thread = DatabaseThreads(count=2, name="events").run
_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


class ReloadNeeded(Exception):
    """The client's view can't be brought up to date with events."""

    def __init__(self, reason: Literal["too_old", "too_many"]) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event's frame, written once for all sockets."""

    position: Position
    topic: str
    text: str


@dataclass(eq=False, slots=True)
class Subscription:
    """``missed`` comes first, then what ``next`` returns; ``last`` is the position of what was handed on."""

    topics: frozenset[str]
    missed: list[str] = field(default_factory=list)
    last: Position = START
    _queue: asyncio.Queue[Delivery] = field(default_factory=lambda: asyncio.Queue(QUEUE_LENGTH))
    _overrun: bool = False

    async def next(self) -> str | None:
        """The next event's frame; None when the queue ran over: what follows is lost to this subscription."""
        while not self._overrun:
            delivery = await self._queue.get()
            if self._overrun:
                break
            if delivery.position > self.last:
                self.last = delivery.position
                return delivery.text
        return None

    def put(self, delivery: Delivery) -> None:
        if self._overrun or delivery.topic not in self.topics:
            return
        try:
            self._queue.put_nowait(delivery)
        except asyncio.QueueFull:
            self._overrun = True


def hub() -> Hub:
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub(loop)
    return _hubs[loop]


class Hub:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._subscriptions: set[Subscription] = set()
        self._starting = asyncio.Lock()
        self._follower: Follower | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._unsaid = asyncio.Event()
        self._latest_heard = 0

    async def subscribe(self, topics: Collection[str], *, since: int | None) -> Subscription:
        """Raises ReloadNeeded when what came after ``since`` isn't kept or is too much."""
        subscription = Subscription(frozenset(topics))
        self._subscriptions.add(subscription)
        try:
            async with self._starting:
                if self._follower is None:
                    self._start(await in_thread(latest))
            # From here on whatever is committed is in the queue, or in what is read now, or in both.
            missed, subscription.last = await in_thread(lambda: _missed(subscription.topics, since))
        except BaseException:
            self.unsubscribe(subscription)
            raise
        subscription.missed = [delivery.text for delivery in missed]
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        if not self._subscriptions and self._follower is not None:
            self._stop()

    def _start(self, position: Position) -> None:
        if not self._subscriptions:
            return
        self._follower = Follower(self._deliver, position=position)
        self._follower.start()
        self._tasks = [
            self._loop.create_task(self._listen(self._follower)),
            self._loop.create_task(self._announce()),
        ]
        add_reader(self._heard)

    def _stop(self) -> None:
        remove_reader(self._heard)
        if self._follower is not None:
            self._follower.stop()
            self._follower = None
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    def _deliver(self, events: Sequence[Event]) -> None:
        """Called by the follower's thread."""
        deliveries = [delivery_of(event) for event in events]
        self._on_loop(lambda: self._fan_out(deliveries))

    def _fan_out(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            for subscription in self._subscriptions:
                subscription.put(delivery)

    def _heard(self, event_id: int) -> None:
        """Called by any thread of this process after a commit."""
        self._latest_heard = max(self._latest_heard, event_id)
        self._on_loop(self._unsaid.set)

    def _on_loop(self, work: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

    async def _announce(self) -> None:
        """Pass on to the other processes (and this one) what was committed here; one notice for a burst."""
        while True:
            await self._unsaid.wait()
            self._unsaid.clear()
            try:
                await _layer().group_send(GROUP, notice(self._latest_heard))
            except Exception as error:  # noqa: BLE001 - whatever the layer has, the table is looked at anyway
                logger.warning("No notice went to the channel layer: %s", error)

    async def _listen(self, follower: Follower) -> None:
        """One process, one member of one group; while the layer is away, the table is looked at anyway."""
        while self._follower is follower:
            try:
                await _pass_notices_on(follower)
            except Exception as error:  # noqa: BLE001 - the same
                logger.warning("The channel layer doesn't answer: %s", error)
            await asyncio.sleep(LAYER_RETRY_SEC)


async def _pass_notices_on(follower: Follower) -> None:
    layer = _layer()
    channel = await layer.new_channel()
    await layer.group_add(GROUP, channel)
    try:
        while True:
            await layer.receive(channel)
            follower.wake()
    finally:
        await layer.group_discard(GROUP, channel)


def _layer() -> Any:
    from channels.layers import get_channel_layer

    return get_channel_layer()


def delivery_of(event: Event) -> Delivery:
    frame = EventFrame(
        id=event.id,
        kind=event.kind,
        object_id=event.object_id,
        workspace_id=event.workspace_id,
        payload=event.payload,
        created_at=event.created_at,
    )
    return Delivery(position_of(event), event.kind.partition(":")[0], frame.to_text())


def _missed(topics: frozenset[str], since: int | None) -> tuple[list[Delivery], Position]:
    """What came after ``since`` up to now, and the position of now."""
    now = latest()
    if since is None:
        return [], now
    position = find_position(since)
    if position is None:
        raise ReloadNeeded("too_old")
    events = read_after(position, limit=REPLAY_LIMIT + 1, topics=topics)
    if len(events) > REPLAY_LIMIT:
        raise ReloadNeeded("too_many")
    missed = [delivery_of(event) for event in events]
    return missed, max([now, *(delivery.position for delivery in missed[-1:])])
