"""The sessions that this web process works: one worker, on a thread and an event loop of its own.

Turns are started by ``wake`` (a message was accepted here) and by a look at the database, at the start and
every 15 s: messages that other processes accepted, leases that ended without a successor, turns that a dead
process left in the middle. How many work at once is bounded (``waiting_line``); a stop and a compaction that
somebody asks for never wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import transaction

from core import clock
from core.paths import HaloHome
from core.settings_file import Settings
from core.settings_schema import setting_of
from sessions_app import queue, requests
from sessions_app.due import is_due, left_over
from sessions_app.engine import Engine
from sessions_app.errors import NotInServer, SessionError, SessionHeld
from sessions_app.logs.records import GrowingRow
from sessions_app.models import Session
from sessions_app.running_sessions import Watcher
from sessions_app.stop_tree import is_anything_to_stop, mark_stopped
from sessions_app.waiting_line import WaitingLine
from sessions_app.watchers import Watchers

LOOK_SEC = 15.0
LANDING_SEC = 7.0
MAX_CONCURRENT = "general.session.max_concurrent"

logger = logging.getLogger(__name__)
_workers: list[Worker] = []


def worker() -> Worker:
    """This process's worker. Raises NotInServer in a process that has none."""
    if not _workers:
        raise NotInServer
    return _workers[0]


class Worker:
    """``wake``, ``stop``, ``interrupt`` and ``watch`` may be called from any thread."""

    def __init__(self, *, home: HaloHome, look_sec: float = LOOK_SEC) -> None:
        self._engine = Engine(home=home, keeps_ledger=True, on_waiting=self._start)
        self._look_sec = look_sec
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._line = WaitingLine(setting_of(MAX_CONCURRENT).default)
        self._woken_again: set[str] = set()
        self._watchers = Watchers()
        self._complaints: dict[str, str] = {}
        self.looks = 0
        self._thread = threading.Thread(target=self._run, name="session-worker", daemon=True)

    def start(self) -> None:
        """Become this process's worker, and look at once for what was left or came in while nobody worked."""
        self._thread.start()
        _workers.append(self)

    def shut_down(self) -> None:
        """Begin to land what runs; returns at once."""
        self._on_loop(self._begin_landing)

    def close(self, *, wait_sec: float = LANDING_SEC) -> bool:
        """Wait until everything has landed; False when something hasn't (it is repaired when it is opened)."""
        self.shut_down()
        if self._thread.ident is None:  # never started
            return True
        self._thread.join(wait_sec)
        if self in _workers:
            _workers.remove(self)
        return not self._thread.is_alive()

    def wake(self, session_id: str) -> None:
        """A message was accepted for this session: its turn starts, or unwinds softly to take it in."""
        self._on_loop(self._start, session_id)

    def stop(self, session_id: str, *, noted: Callable[[], None] = lambda: None) -> bool:
        """End the turns there wherever they run; what waits is folded in unanswered.

        ``noted`` is called in the transaction that makes the rows say so. False, and nothing was changed, when
        nothing ran, waited or was owed. Asks the database: not for an event loop.
        """
        with transaction.atomic():
            runs = self._engine.is_tree_at_work(session_id) or requests.is_worked_elsewhere(session_id)
            if not runs and not is_anything_to_stop(session_id):
                return False
            to_wake = mark_stopped(session_id, now=clock.now())
            asked = requests.ask(session_id, Session.Asked.STOP)
            noted()
        for name in to_wake:
            self.wake(name)
        if not self._engine.stop(session_id, marked=True) and not asked and queue.waiting(session_id):
            self._on_loop(self._fold, session_id)
        return True

    def interrupt(self, session_id: str, *, noted: Callable[[], None] = lambda: None) -> bool:
        """Abort the turn wherever it runs, so that what waits is worked next. False when nothing ran.

        ``noted`` is called when something runs, ahead of the act and in the transaction that asks for it. Asks
        the database: not for an event loop.
        """
        here = self._engine.is_at_work(session_id)
        with transaction.atomic():
            runs = here or requests.ask(session_id, Session.Asked.INTERRUPT)
            if runs:
                noted()
        if here:
            self._engine.interrupt(session_id)
        elif not runs:
            self.wake(session_id)
        return runs

    def abort(self, session_id: str) -> None:
        """End the turns that run here, of the session and all below it, whose rows say already that they ended."""
        self._engine.stop(session_id, marked=True)

    def compact(self, session_id: str) -> None:
        """Shorten the history now; what comes of it stands in the log. A session that is at work is left alone."""
        self._on_loop(self._compact, session_id)

    def is_at_work(self, session_id: str) -> bool:
        """Whether this process works the session now."""
        return self._engine.is_at_work(session_id)

    def growing(self, session_id: str) -> GrowingRow | None:
        """The reply that streams in this process now, ahead of the log by what the next save will hold."""
        return self._engine.growing(session_id)

    def watch(self, session_id: str, fn: Watcher) -> Callable[[], None]:
        """Have ``fn`` called on the worker's loop with each event once the log has it; it must return at once.

        Only while this process works the session. Returns what ends the watching.
        """
        return self._watchers.add(session_id, fn)

    def _on_loop(self, work: Callable[..., object], *args: object) -> None:
        """After the end of the loop nothing is done: what waits is found by the next process."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *args)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._engine.close()
            self._loop.close()

    async def _main(self) -> None:
        while not self._closing.is_set():
            await self._look()
            try:
                async with asyncio.timeout(self._look_sec):
                    await self._closing.wait()
            except TimeoutError:
                continue
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def _begin_landing(self) -> None:
        self._closing.set()
        self._engine.shut_down()

    async def _look(self) -> None:
        try:
            self._line.bound, left_over = await self._engine.in_pool(_look_around, self._engine.home)
            self._admit()
            for session_id in left_over:
                self._start(session_id)
            self.looks += 1
        except Exception:
            logger.exception(
                "Waiting sessions can't be looked for; the next look comes in %s s.", self._look_sec
            )

    def _start(self, session_id: str) -> None:
        """On the loop: begins, or waits for room. A session that is at work already takes the message in."""
        if session_id in self._tasks:
            self._woken_again.add(session_id)
            self._engine.interrupt_softly(session_id)
        elif self._line.has_room_for(session_id):
            self._begin(session_id, self._work(session_id))
        else:
            self._line.wait(session_id)

    def _admit(self) -> None:
        """On the loop: there may be room for who waits."""
        while admitted := self._line.admitted():
            for session_id in admitted:
                self._begin(session_id, self._work(session_id))

    def _fold(self, session_id: str) -> None:
        """On the loop."""
        if session_id not in self._tasks:
            self._begin(session_id, self._guarded(session_id, self._engine.fold(session_id)))
        elif not self._engine.stop(session_id):  # it is being opened, or is just ending
            self._loop.call_later(0.05, self._fold, session_id)

    def _compact(self, session_id: str) -> None:
        """On the loop."""
        if session_id not in self._tasks:
            work = self._engine.compact(session_id, watch=partial(self._watchers.tell, session_id))
            self._begin(session_id, self._guarded(session_id, work))

    def _begin(self, session_id: str, work: Coroutine[Any, Any, None]) -> None:
        if self._closing.is_set():
            work.close()
            return
        self._line.began(session_id)
        task = self._tasks[session_id] = self._loop.create_task(work)
        task.add_done_callback(lambda _task: self._done(session_id))

    def _done(self, session_id: str) -> None:
        self._tasks.pop(session_id, None)
        if session_id in self._woken_again:
            self._woken_again.discard(session_id)
            self._start(session_id)  # its tree is at work still, and needn't stand in line again
        self._line.ended(session_id)
        self._admit()

    async def _work(self, session_id: str) -> None:
        await self._guarded(session_id, self._work_if_due(session_id))

    async def _work_if_due(self, session_id: str) -> None:
        if await self._engine.in_pool(is_due, session_id):
            await self._engine.work(session_id, watch=partial(self._watchers.tell, session_id))

    async def _guarded(self, session_id: str, work: Coroutine[Any, Any, object]) -> None:
        """Whatever goes wrong, the message waits and is looked for again; the same complaint is logged once."""
        try:
            await work
        except SessionHeld:
            return  # that process takes it
        except SessionError as error:
            if self._complaints.get(session_id) != str(error):
                self._complaints[session_id] = str(error)
                logger.warning("Session %s waits: %s", session_id, error)
        except Exception:
            logger.exception(
                "Session %s can't be worked; it is tried again in %s s.", session_id, self._look_sec
            )
        else:
            self._complaints.pop(session_id, None)


def _look_around(home: HaloHome) -> tuple[int, list[str]]:
    """How many may work at once, and who has to be worked."""
    return Settings.load(home).get(MAX_CONCURRENT), left_over()
