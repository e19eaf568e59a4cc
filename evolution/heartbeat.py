"""The wrapper's sign of life, and the deadline after which it must believe that others took its row."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import Error as DatabaseError
from django.db import connection

from core import clock
from core.db.clock import database_now
from evolution import transitions
from evolution.claim import Claim
from evolution.errors import ClaimLost

logger = logging.getLogger(__name__)

BEAT_SEC = 60.0
LOOK_SEC = 5.0
MARGIN_SEC = 60.0
CONFIRM_SEC = 5.0
LEAVE_SEC = 20.0
"""How long the main thread may take to leave after the claim is lost: its child gets 10 s of them."""


@dataclass(slots=True)
class Heartbeat:
    """Beats on one claim from a thread of its own, until it is stopped or the claim is lost.

    The claim counts as lost when the row says so (looked at every ``look_sec``), or when no beat has
    succeeded for longer than the timeout less a minute, counted from before the last good one was sent by a
    clock that goes on while the machine sleeps. ``on_lost`` is called once, from the beating thread; a main
    thread that hasn't left ``leave_sec`` later is ended with the process.
    """

    claim: Claim
    timeout: timedelta
    on_lost: Callable[[], None]
    beat_sec: float = BEAT_SEC
    look_sec: float = LOOK_SEC
    leave_sec: float = LEAVE_SEC
    elapsed: Callable[[], float] = clock.suspended_seconds
    end_process: Callable[[], None] = lambda: os._exit(3)
    _last_good: float = 0.0
    _confirmed: float = 0.0
    _lost: threading.Event = field(default_factory=threading.Event)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def start(self, *, since: float) -> None:
        """``since``: ``clock.suspended_seconds()`` before the write that first confirmed the claim."""
        self._last_good = self._confirmed = since
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set() or self._is_overdue()

    def check(self) -> None:
        """Raises ClaimLost once the claim is known to be lost; asks no database."""
        if self.is_lost:
            raise ClaimLost(f"{self.claim.row_id}: the claim of attempt {self.claim.attempt} is lost.")

    def confirm(self, *, afresh: bool = False) -> None:
        """Ask the row, unless that was done within the last ``CONFIRM_SEC``; for use between two swaps.

        ``afresh``: ask in any case. Raises ClaimLost when the row is another's; a database error is passed on.
        """
        self.check()
        asked = self.elapsed()
        if asked - self._confirmed <= CONFIRM_SEC and not afresh:
            return
        with self._guard:
            held = transitions.is_held(self.claim)
        if not held:
            self._lost.set()
            self.check()
        self._confirmed = asked

    def moved(self, move: Callable[[Claim], Claim]) -> Claim:
        """Let the wrapper move its own row's status without a look in between taking it for a loss."""
        with self._guard:
            self.claim = move(self.claim)
            return self.claim

    def _run(self) -> None:
        try:
            self._until_lost()
        finally:
            connection.close()
        if self._stopped.is_set():
            return
        self._lost.set()
        logger.warning("%s: the claim of attempt %s is lost", self.claim.row_id, self.claim.attempt)
        self.on_lost()
        if not self._stopped.wait(self.leave_sec):
            sys.stderr.write("The wrapper lost its claim and did not stop in time; it is ended.\n")
            self.end_process()

    def _until_lost(self) -> None:
        while not self._stopped.wait(self.look_sec):
            if self._is_overdue() or not self._look():
                return

    def _look(self) -> bool:
        """Beat when it is time, else only look. A database that can't be reached is no answer."""
        sent = self.elapsed()
        try:
            with self._guard:
                if self._stopped.is_set():
                    return True
                if sent - self._last_good < self.beat_sec:
                    return transitions.is_held(self.claim)
                held = transitions.beat(self.claim, now=database_now())
        except DatabaseError as error:
            logger.warning("%s: the database can't be reached: %s", self.claim.row_id, error)
            connection.close()
            return True
        if held:
            self._last_good = self._confirmed = sent
        return held

    def _is_overdue(self) -> bool:
        return self.elapsed() - self._last_good > self.timeout.total_seconds() - MARGIN_SEC
