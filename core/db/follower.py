"""The thread that reads new events from the table and hands them on, in order, each once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from django.db import Error as AnyDatabaseError
from django.db import connection

from core.db.events import Position, position_of, read_after
from core.db.models import Event

INTERVAL_SEC = 0.2
SQLITE_INTERVAL_SEC = 0.05
"""SQLite says whether anything was committed without a look at the table, for some 30 µs."""

BATCH = 500

logger = logging.getLogger(__name__)


class Follower:
    """``deliver`` is called in the thread with what came after ``position``.

    It looks every 200 ms (50 ms on SQLite) and when woken.

    A database that doesn't answer is asked again and again, and nothing is left out meanwhile.
    """

    def __init__(self, deliver: Callable[[Sequence[Event]], None], *, position: Position) -> None:
        self._deliver = deliver
        self._position = position
        self._woken = threading.Event()
        self._stopped = False
        self._data_version: int | None = None
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        """Returns at once; the thread ends before its next look."""
        self._stopped = True
        self._woken.set()

    def join(self, timeout_sec: float) -> None:
        self._thread.join(timeout_sec)

    def _run(self) -> None:
        try:
            while not self._stopped:
                try:
                    self._look()
                except AnyDatabaseError:
                    logger.exception("Events can't be read; the next look comes in %s s.", _interval_sec())
                    self._data_version = None
                    connection.close()
                self._woken.wait(_interval_sec())
                self._woken.clear()
        finally:
            connection.close()

    def _look(self) -> None:
        if not self._may_have_changed():
            return
        while not self._stopped:
            events = read_after(self._position, limit=BATCH)
            if not events:
                return
            self._deliver(events)
            self._position = position_of(events[-1])

    def _may_have_changed(self) -> bool:
        """SQLite numbers the changes that others commit; asking for the number reads one page of memory."""
        if connection.vendor != "sqlite":
            return True
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version: int = cursor.fetchone()[0]
        changed = version != self._data_version
        self._data_version = version
        return changed


def _interval_sec() -> float:
    return SQLITE_INTERVAL_SEC if connection.vendor == "sqlite" else INTERVAL_SEC
