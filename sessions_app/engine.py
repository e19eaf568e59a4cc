"""Works the turns of sessions in this process, those of a tree side by side: lease, queue, turn, save.

All database and file work runs as whole synchronous functions in a bounded thread pool; the event loop only
sees the turn itself, whose save points are plain appends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.compaction import Outcome as Compaction
from agents.turn import TurnOutcome
from core.paths import HaloHome
from sessions_app import queue, session_pass, trees
from sessions_app.errors import SessionRefused, SessionUnreadable
from sessions_app.logs import LeaseLostError
from sessions_app.running_sessions import Running, RunningSessions, Stop, Watcher
from sessions_app.tree_lease import TreeLeases


class Engine(RunningSessions):
    """One per process. ``work`` may be called for any number of sessions at once, once for each."""

    def __init__(
        self,
        *,
        home: HaloHome,
        threads: int = 4,
        keeps_ledger: bool = False,
        on_waiting: Callable[[str], None] = lambda _session_id: None,
    ) -> None:
        super().__init__(home=home, threads=threads, keeps_ledger=keeps_ledger, on_waiting=on_waiting)
        self._leases = TreeLeases(home=home, threads=self.threads, look=self.take_in, lost=self.abort_tree)

    async def work(self, session_id: str, *, watch: Watcher = lambda _event: None) -> TurnOutcome | None:
        """Work off everything that waits; the last turn's outcome, None when nothing asked for one.

        ``watch`` sees every event after the log has it. Raises SessionHeld when another process works the
        session (the message stays queued and that process takes it), SessionRefused, SessionUnreadable.
        """
        return await self._work_off(session_id, Running(watch))

    async def fold(self, session_id: str) -> None:
        """A stop of a session that isn't at work: what waits goes into its history, unanswered."""
        await self._work_off(session_id, Running(stopped=Stop(session_id)))

    async def compact(self, session_id: str, *, watch: Watcher = lambda _event: None) -> Compaction:
        """Shorten the history now, without a turn. What came of it stands in the log, unless there is nothing.

        Raises SessionRefused (``busy`` while it is at work), SessionHeld, SessionUnreadable.
        """
        if self.is_at_work(session_id):
            raise SessionRefused("The session is at work; it compacts by itself when it has to.", "busy")
        running = Running(watch)
        with self.at_work(session_id, running), _said_when_unreadable():
            async with self._leases.hold(trees.root_of(session_id)) as held:
                return await session_pass.compact(session_id, running, held=held, sessions=self)

    async def _work_off(self, session_id: str, running: Running) -> TurnOutcome | None:
        outcome: TurnOutcome | None = None
        again = True
        with _said_when_unreadable():  # what a crash left is mended on opening, which writes
            while again and not self.closing:
                async with self._leases.hold(trees.root_of(session_id)) as held:
                    found = await session_pass.work_off(session_id, running, held=held, sessions=self)
                    outcome = found or outcome
                again = running.stopped is None and await self.in_pool(queue.wants_turn, session_id)
        return outcome


@contextmanager
def _said_when_unreadable() -> Iterator[None]:
    """A log that can't be read or written, or that a successor writes now, is a SessionUnreadable."""
    try:
        yield
    except LeaseLostError as error:
        raise SessionUnreadable(f"This process no longer works the session: {error}") from error
    except OSError as error:
        raise SessionUnreadable(
            f"The session's log can't be read or written: {error}. What was accepted is kept and worked when "
            "this is mended."
        ) from error
