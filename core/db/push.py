"""The numbered notice after a commit: readers look at the table at once instead of at their next turn.

A notice carries nothing but the number, and a lost one costs 200 ms: the table is the truth. So nothing here
may hold up or fail the change that was committed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import transaction

GROUP = "events"
NOBODY = "nobody"
"""A group that nobody is in."""
PATIENCE_SEC = 1.0
PAUSE_SEC = 10.0

logger = logging.getLogger(__name__)
_readers: set[Callable[[int], None]] = set()
_readers_lock = threading.Lock()
_paused_until = [0.0]


def add_reader(heard: Callable[[int], None]) -> None:
    """A reader in this process that passes the notice on to the channel layer itself; any thread calls it."""
    with _readers_lock:
        _readers.add(heard)


def remove_reader(heard: Callable[[int], None]) -> None:
    with _readers_lock:
        _readers.discard(heard)


def push_on_commit(event_id: int) -> None:
    transaction.on_commit(lambda: _push(event_id), robust=True)


def _push(event_id: int) -> None:
    with _readers_lock:
        readers = tuple(_readers)
    for heard in readers:
        heard(event_id)
    if not readers and _crosses_processes():
        _send(event_id)


def layer_answers() -> bool:
    """Whether a notice would get through. The layer in memory always answers."""
    from asgiref.sync import async_to_sync

    if not _crosses_processes():
        return True
    try:
        async_to_sync(_send_on_layer)(NOBODY, 0)
    except Exception as error:  # noqa: BLE001 - whatever the layer has
        logger.warning("The channel layer doesn't answer: %s", error)
        return False
    return True


def _crosses_processes() -> bool:
    layers: dict[str, Any] = getattr(settings, "CHANNEL_LAYERS", {})
    backend = layers.get("default", {}).get("BACKEND", "")
    return bool(backend) and not backend.endswith("InMemoryChannelLayer")


def _send(event_id: int) -> None:
    """From a command, a wrapper or a cluster. After a failure nothing is tried for a while."""
    from asgiref.sync import async_to_sync

    if time.monotonic() < _paused_until[0]:
        return
    try:
        async_to_sync(_send_on_layer)(GROUP, event_id)
    except Exception as error:  # noqa: BLE001 - whatever the layer has, the change is committed and will be seen
        _paused_until[0] = time.monotonic() + PAUSE_SEC
        logger.warning("No notice of event %s went to the channel layer: %s", event_id, error)


async def _send_on_layer(group: str, event_id: int) -> None:
    from channels.layers import get_channel_layer

    layer = get_channel_layer()
    await asyncio.wait_for(layer.group_send(group, notice(event_id)), PATIENCE_SEC)


def notice(event_id: int) -> dict[str, object]:
    return {"type": "event.notice", "id": event_id}
