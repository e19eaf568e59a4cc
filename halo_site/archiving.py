"""The web process runs the archive pass when it starts, and daily where no cluster does.

On a thread of its own: packing may take minutes, and ticks must not wait for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from core import clock

EVERY = timedelta(days=1)
LOOK_SEC = 600.0
CLUSTER_SILENT_AFTER = timedelta(minutes=10)

logger = logging.getLogger(__name__)


class Archiving:
    """``run`` is the pass; ``cluster_ticked`` says when a cluster was last at work."""

    def __init__(
        self,
        *,
        run: Callable[[], object] | None = None,
        cluster_ticked: Callable[[], datetime | None] | None = None,
        now: Callable[[], datetime] = clock.now,
        look_sec: float = LOOK_SEC,
    ) -> None:
        self._run, self._cluster_ticked = run or _archive, cluster_ticked or _last_tick
        self._now, self._look_sec = now, look_sec
        self._last: datetime | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="archiving", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """A pass under way is not waited for: it may be killed at any point."""
        self._stop.set()

    def _work(self) -> None:
        from django.db import connection

        while True:
            try:
                if self.is_due():
                    self._last = self._now()
                    self._run()
            except Exception:
                logger.exception("The archive pass failed; the next one comes in %s.", EVERY)
            finally:
                connection.close()
            if self._stop.wait(self._look_sec):
                return

    def is_due(self) -> bool:
        if self._last is None:
            return True
        if self._now() - self._last < EVERY:
            return False
        ticked = self._cluster_ticked()
        return ticked is None or self._now() - ticked > CLUSTER_SILENT_AFTER


def _archive() -> None:
    from evolution.archive import archive

    archive()


def _last_tick() -> datetime | None:
    from evolution.tasks import last_tick

    return last_tick()
