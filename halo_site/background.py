"""What a web process does beside answering: turns of sessions, ticks, the archive pass. The same under any server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from core.paths import halo_home
from halo_site.archiving import Archiving
from halo_site.ticking import Ticking
from sessions_app.worker import Worker

EXIT_AFTER_SEC = 9.0


class Background:
    """``start`` once it listens; ``shut_down`` when it is to end, ``stop`` when it answers no more."""

    def __init__(self) -> None:
        self._worker, self._ticking, self._archiving = Worker(home=halo_home()), Ticking(), Archiving()
        self._started = False

    def start(self) -> None:
        self._started = True
        self._ticking.start()
        self._archiving.start()
        self._worker.start()

    def shut_down(self) -> None:
        """Begin to land the turns that run; returns at once.

        What hasn't ended ``EXIT_AFTER_SEC`` later (a tool that hangs) ends with the process.
        """
        self._worker.shut_down()
        exit_late = threading.Timer(EXIT_AFTER_SEC, os._exit, [1])
        exit_late.daemon = True
        exit_late.start()

    def stop(self) -> None:
        """Wait until everything has landed."""
        if self._started:
            self._worker.close()
            self._archiving.stop()
            self._ticking.stop()


async def lifespan(
    _scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """ASGI's own word for start and end, which uvicorn speaks; daphne doesn't (``halo_site.web_server``)."""
    background = Background()
    await receive()
    background.start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    background.shut_down()
    await asyncio.to_thread(background.stop)
    await send({"type": "lifespan.shutdown.complete"})
