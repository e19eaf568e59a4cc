"""The sessions that work in this process: which they are, and what others may do to them meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agents.abort import AbortToken
from agents.events import AgentEvent
from core import clock
from core.db.threads import DatabaseThreads
from core.paths import HaloHome
from sessions_app.logs import TurnRecorder
from sessions_app.logs.records import GrowingRow
from sessions_app.models import Session
from sessions_app.opened_session import OpenSession
from sessions_app.stop_tree import mark_stopped
from sessions_app.tree_lease import Seen

Watcher = Callable[[AgentEvent], None]


@dataclass(slots=True)
class Stop:
    """One stop of a session and all below it; ``marked`` once the rows say so (``stop_tree``)."""

    session_id: str
    marked: bool = False


@dataclass(slots=True)
class Running:
    """One session at work; what others may do to it is read and set from any thread.

    ``watch`` sees every event after the log has it. ``interrupted``: softly, after the tool call that runs.
    ``pending``: ids of the messages that the turn answers.
    """

    watch: Watcher = lambda _event: None
    abort: AbortToken = field(default_factory=AbortToken)
    stopped: Stop | None = None
    interrupted: bool = False
    recorder: TurnRecorder | None = None
    pending: list[int] = field(default_factory=list)


class RunningSessions:
    """``closing``: the process ends, and no turn may start any more.

    ``keeps_ledger``: sessions at work are entered there, so that a successor tells them if this process dies.
    ``on_waiting`` is told, on the event loop, of a session in whose queue something waits now.
    """

    def __init__(
        self, *, home: HaloHome, threads: int, keeps_ledger: bool, on_waiting: Callable[[str], None]
    ) -> None:
        self.home = home
        self.keeps_ledger = keeps_ledger
        self.closing = False
        self.threads = DatabaseThreads(count=threads, name="session-db")
        self.in_pool = self.threads.run
        self._on_waiting = on_waiting
        self._running: dict[str, Running] = {}
        self._background: set[asyncio.Task[None]] = set()

    @contextmanager
    def at_work(self, session_id: str, running: Running) -> Iterator[None]:
        """Within it, what is said about the session is said to ``running``."""
        self._running[session_id] = running
        try:
            yield
        finally:
            self._running.pop(session_id, None)

    def is_at_work(self, session_id: str) -> bool:
        return session_id in self._running

    def is_tree_at_work(self, session_id: str) -> bool:
        """The session itself, or one below it."""
        return bool(self._in_tree(session_id))

    def growing(self, session_id: str) -> GrowingRow | None:
        """The reply that streams here now, as far as it has come. From any thread."""
        running = self._running.get(session_id)
        recorder = running.recorder if running is not None else None
        return recorder.growing() if recorder is not None else None

    def stop(self, session_id: str, *, marked: bool = False) -> bool:
        """Abort the turns that run here, of the session and all below it; what waits is folded in unanswered.

        ``marked``: the rows say already that it was stopped. False when nothing runs.
        """
        running = self._in_tree(session_id)
        stop = Stop(session_id, marked)
        for each in running:
            each.stopped = stop
            each.abort.abort()
        return bool(running)

    async def stop_tree(self, session_id: str, *, by: str = "") -> None:
        """The same, and the rows first, so that it also counts where nothing runs; ``by`` is told nothing."""
        for name in await self.in_pool(mark_stopped, session_id, by=by, now=clock.now()):
            self._on_waiting(name)
        self.stop(session_id, marked=True)

    async def mark(self, running: Running) -> None:
        """Have the rows say that it was stopped: once for each stop, and ahead of the end of the turns it ends."""
        stop = running.stopped
        if stop is None or stop.marked:
            return
        stop.marked = True
        for name in await self.in_pool(mark_stopped, stop.session_id, now=clock.now()):
            self._on_waiting(name)

    def interrupt(self, session_id: str) -> bool:
        """Abort the turn that runs here; what waits is worked next. False when nothing runs."""
        running = self._running.get(session_id)
        if running is None:
            return False
        running.abort.abort()
        return True

    def interrupt_softly(self, session_id: str) -> None:
        """A message was queued: after the tool call that runs, the turn unwinds and takes it in."""
        running = self._running.get(session_id)
        if running is not None:
            running.interrupted = True

    def wake(self, session_id: str) -> None:
        """On the event loop: something waits in the session's queue."""
        self._on_waiting(session_id)

    def wake_told(self, opened: OpenSession) -> None:
        """On the event loop: the sessions that were told something by what this one did."""
        told, opened.to_wake = opened.to_wake, []
        for name in told:
            self._on_waiting(name)

    def take_in(self, seen: Seen) -> None:
        """What other processes accepted or asked, found by the look at a tree's rows."""
        for session_id, what in seen.asked.items():
            if what == Session.Asked.STOP:
                self._in_background(self.stop_tree(session_id))
            else:
                self.interrupt(session_id)
        for session_id, message_ids in seen.waiting.items():
            running = self._running.get(session_id)
            if running is None:
                self._on_waiting(session_id)
            elif message_ids - set(running.pending):
                running.interrupted = True

    def abort_tree(self, root_id: str) -> None:
        """A successor has it: nothing more is written, and nothing is ended either."""
        for running in self._in_tree(root_id):
            running.abort.abort()

    def shut_down(self) -> None:
        """The process ends: no turn starts any more, those that run are landed as if their process had died,
        and the ledger keeps them, so that whoever comes next goes on with them.
        """
        self.closing = True
        for running in list(self._running.values()):
            running.abort.abort(for_shutdown=True)

    def close(self) -> None:
        self.threads.close()

    def _in_tree(self, session_id: str) -> list[Running]:
        below = f"{session_id}>"
        return [
            running
            for name, running in list(self._running.items())
            if name == session_id or name.startswith(below)
        ]

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
