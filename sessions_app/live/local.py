"""What streams in this process: how a view's loop hears of the worker's, and reads the reply that grows there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from sessions_app.errors import NotInServer
from sessions_app.logs.records import GrowingRow
from sessions_app.worker import worker


class Changed:
    """Set from any thread, waited for on one loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        if not self._event.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> None:
        """Until something changed, at most ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
        finally:
            self._event.clear()


@contextmanager
def watching(session_id: str) -> Iterator[Changed]:
    """``Changed`` is set by every event of the session's turn in this process; without a worker by none."""
    changed = Changed()
    try:
        unwatch = worker().watch(session_id, lambda _event: changed.set())
    except NotInServer:
        yield changed
        return
    try:
        yield changed
    finally:
        unwatch()


def growing(session_id: str) -> GrowingRow | None:
    """The reply that streams here now, None when none does or another process works the session."""
    try:
        return worker().growing(session_id)
    except NotInServer:
        return None
