"""The web process ticks as well, every 5 s, so that nothing waits for a cluster that isn't there.

It also forgets old events, a batch with each tick.
"""

from __future__ import annotations

import logging
import threading
from datetime import datetime

from core import clock

INTERVAL_SEC = 5.0

logger = logging.getLogger(__name__)
_last_tick: list[datetime] = []


def last_tick() -> datetime | None:
    """When this process last finished a tick; None before the first."""
    return _last_tick[0] if _last_tick else None


class Ticking:
    """A thread that calls ``tick()``; a failing tick is logged and the next one comes all the same."""

    def __init__(self, *, interval_sec: float = INTERVAL_SEC) -> None:
        self._interval_sec = interval_sec
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticking", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        from django.db import connection

        from core.db import events
        from core.db.clock import database_now
        from evolution.ticker import tick

        while not self._stop.wait(self._interval_sec):
            try:
                tick()
                events.prune(now=database_now())
                _last_tick[:] = [clock.now()]
            except Exception:
                logger.exception("A tick failed; the next one comes in %s s.", self._interval_sec)
            finally:
                connection.close()
