"""Ending a turn from outside: one token, obeyed by model calls, delays, tools and commands alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

SHUTDOWN_GRACE_SEC = 3.0

Result = TypeVar("Result")


class Aborted(Exception):
    """The turn was aborted by a person or another session; not an error."""


class AbortToken:
    """Set from any thread; never unset. ``on_abort`` callbacks run on the thread that aborts.

    ``for_shutdown``: the whole process ends, so that commands get ``SHUTDOWN_GRACE_SEC`` to end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._set = False
        self._for_shutdown = False

    @property
    def is_set(self) -> bool:
        return self._set

    @property
    def for_shutdown(self) -> bool:
        return self._for_shutdown

    def abort(self, *, for_shutdown: bool = False) -> None:
        with self._lock:
            self._for_shutdown = self._for_shutdown or for_shutdown
            if self._set:
                return
            self._set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` at the abort, at once if it has happened; returns what takes it off again."""
        with self._lock:
            if not self._set:
                self._callbacks.append(callback)
                return lambda: self._forget(callback)
        callback()
        return lambda: None

    def _forget(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    async def guard(self, work: Coroutine[Any, Any, Result]) -> Result:
        """``work``'s result; at an abort ``work`` is cancelled, waited for, and Aborted is raised."""
        if self._set:
            work.close()
            raise Aborted
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        take_off = self.on_abort(lambda: _call_soon(loop, task))
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._set and not (current is not None and current.cancelling()):
                raise Aborted from None
            task.cancel()
            raise
        finally:
            take_off()

    async def sleep(self, seconds: float) -> None:
        """Wait, or raise Aborted the moment the turn is aborted."""
        await self.guard(asyncio.sleep(seconds))


def _call_soon(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)
