"""One tree worked in a process without a server (``halo chat``): until it is quiet, as the worker would do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agents.compaction import Outcome as Compaction
from agents.turn import TurnOutcome
from core.paths import HaloHome
from sessions_app import queue, trees
from sessions_app.engine import Engine
from sessions_app.errors import SessionError
from sessions_app.running_sessions import Watcher


class TreeWork:
    """``work`` one session at a time; what waits in other trees is left to their processes."""

    def __init__(self, *, home: HaloHome, note: Callable[[str], None]) -> None:
        self.engine = Engine(home=home, on_waiting=self._start)
        self._note = note
        self._root_id = ""
        self._session_id = ""
        self._watch: Watcher = lambda _event: None
        self._tasks: dict[str, asyncio.Task[TurnOutcome | None]] = {}
        self._again: set[str] = set()
        self._unworkable: set[str] = set()

    async def work(self, session_id: str, *, watch: Watcher) -> TurnOutcome | None:
        """Work off what waits in the session and what its sub-sessions make of it; its last turn's outcome.

        ``watch`` sees the events of this session alone. Raises what ``Engine.work`` raises for it. A
        sub-session that can't be worked is a note.
        """
        self._session_id, self._root_id, self._watch = session_id, trees.root_of(session_id), watch
        self._unworkable = set()
        outcome: TurnOutcome | None = None
        self._start(session_id)
        try:
            while self._tasks or await self._found_waiting():
                await asyncio.wait(list(self._tasks.values()), return_when=asyncio.FIRST_COMPLETED)
                for name, task in list(self._tasks.items()):
                    if task.done():
                        outcome = self._ended(name, task) or outcome
        finally:
            await self._end_all()
        return outcome

    async def compact(self, session_id: str, *, watch: Watcher) -> Compaction:
        """Raises what ``Engine.compact`` raises."""
        self._session_id, self._root_id, self._watch = session_id, trees.root_of(session_id), watch
        return await self.engine.compact(session_id, watch=watch)

    def stop(self, session_id: str) -> bool:
        """End the turns that run in the whole tree; False when none runs."""
        return self.engine.stop(trees.root_of(session_id))

    def close(self) -> None:
        self.engine.close()

    async def _found_waiting(self) -> bool:
        """Start what a process that died left waiting; whether anything is at work now."""
        waiting = await self.engine.in_pool(queue.waiting_in_tree, self._root_id)
        for name in sorted(set(waiting) - self._unworkable):
            self._start(name)
        return bool(self._tasks)

    async def _end_all(self) -> None:
        """Nothing goes on behind the caller's back when it is cancelled or can't go on."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._again.clear()

    def _start(self, session_id: str) -> None:
        if trees.root_of(session_id) != self._root_id:
            return
        if session_id in self._tasks:
            self._again.add(session_id)
            self.engine.interrupt_softly(session_id)
            return
        watch: Watcher = self._watch if session_id == self._session_id else lambda _event: None
        if session_id != self._session_id:
            self._note(f"· sub-session {session_id} works")
        self._tasks[session_id] = asyncio.create_task(self.engine.work(session_id, watch=watch))

    def _ended(self, session_id: str, task: asyncio.Task[TurnOutcome | None]) -> TurnOutcome | None:
        """The outcome when it is the session that was asked for."""
        del self._tasks[session_id]
        again = session_id in self._again
        self._again.discard(session_id)
        is_asked = session_id == self._session_id
        outcome: TurnOutcome | None = None
        try:
            outcome = task.result()
        except SessionError as error:
            if is_asked:
                raise
            self._note(f"· sub-session {session_id} waits: {error}")
        if again:
            self._start(session_id)
        elif outcome is None:
            self._unworkable.add(session_id)  # whatever still waits there waits for somebody else
        if outcome is not None and not is_asked:
            self._note(f"· sub-session {session_id}: {outcome.status}")
        return outcome if is_asked else None
