"""Works the turns of sessions in this process, those of a tree side by side: lease, queue, turn, save.

All database and file work runs as whole synchronous functions in a bounded thread pool; the event loop only
sees the turn itself, whose save points are plain appends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connections

from agents.abort import AbortToken
from agents.compaction import Outcome as Compaction
from agents.events import AgentEvent, Complete, SystemNote, TurnError, Usage
from agents.turn import Turn, TurnOutcome
from core import clock
from core.paths import HaloHome
from sessions_app import lease, ledger, model_library, queue, tool_bundles
from sessions_app.errors import SessionRefused, SessionUnreadable
from sessions_app.logs import LeaseLostError, TurnRecorder
from sessions_app.logs.records import GrowingRow
from sessions_app.models import Session
from sessions_app.open_session import (
    OpenSession,
    finish_compaction,
    finish_turn,
    fold_unanswered,
    land_turn,
    note,
    open_session,
    take_batch,
)
from sessions_app.prepare import CannotStart, Ingredients, prepare
from sessions_app.stop_tree import mark_stopped
from sessions_app.tree_lease import Seen, TreeLeases
from sessions_app.turn_host import TurnHost

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Watcher = Callable[[AgentEvent], None]


@dataclass(slots=True)
class _Stop:
    """One stop of a session and all below it; ``marked`` once the rows say so (``stop_tree``)."""

    session_id: str
    marked: bool = False


@dataclass(slots=True)
class _Running:
    """What others may do to a session that works here; read and set from any thread."""

    abort: AbortToken = field(default_factory=AbortToken)
    stopped: _Stop | None = None
    interrupted: bool = False
    recorder: TurnRecorder | None = None
    pending: list[int] = field(default_factory=list)


class Engine:
    """One per process. ``work`` may be called for any number of sessions at once, once for each.

    ``keeps_ledger``: sessions at work are entered there, so that a successor tells them if this process dies.
    ``on_waiting`` is told, on the event loop, of a session in whose queue something waits now.
    """

    def __init__(
        self,
        *,
        home: HaloHome,
        threads: int = 4,
        keeps_ledger: bool = False,
        on_waiting: Callable[[str], None] = lambda _session_id: None,
    ) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="session-db")
        self._running: dict[str, _Running] = {}
        self._keeps_ledger = keeps_ledger
        self._on_waiting = on_waiting
        self._closing = False
        self._background: set[asyncio.Task[None]] = set()
        self._leases = TreeLeases(
            home=home, in_pool=self.in_pool, look=self._take_in, lost=self._tree_is_lost
        )

    async def work(self, session_id: str, *, watch: Watcher = lambda _event: None) -> TurnOutcome | None:
        """Work off everything that waits; the last turn's outcome, None when nothing asked for one.

        ``watch`` sees every event after the log has it. Raises SessionHeld when another process works the
        session (the message stays queued and that process takes it), SessionRefused, SessionUnreadable.
        """
        return await self._work(session_id, _Running(), watch)

    async def fold(self, session_id: str) -> None:
        """A stop of a session that isn't at work: what waits goes into its history, unanswered."""
        await self._work(session_id, _Running(stopped=_Stop(session_id)), lambda _event: None)

    async def compact(self, session_id: str, *, watch: Watcher = lambda _event: None) -> Compaction:
        """Shorten the history now, without a turn. What came of it stands in the log, unless there is nothing.

        Raises SessionRefused (``busy`` while it is at work), SessionHeld, SessionUnreadable.
        """
        if session_id in self._running:
            raise SessionRefused("The session is at work; it compacts by itself when it has to.", "busy")
        running = self._running[session_id] = _Running()
        try:
            async with self._leases.hold(session_id.split(">", 1)[0]) as held:
                opened = await self.in_pool(open_session, session_id, home=self._home, held=held)
                self._tell(opened)
                outcome = await self._compact(opened, running, watch)
                if running.stopped and not self._closing:
                    await self._mark(running)
                    await self.in_pool(fold_unanswered, opened, now=clock.now())
                return outcome
        except LeaseLostError as error:
            raise SessionUnreadable(f"This process no longer works the session: {error}") from error
        except OSError as error:
            raise _unreadable(error) from error
        finally:
            self._running.pop(session_id, None)

    async def _compact(self, opened: OpenSession, running: _Running, watch: Watcher) -> Compaction:
        meter = _Meter()
        outcome: Compaction = "failed"
        try:
            ingredients = await self.in_pool(prepare, opened.row, home=self._home)
        except CannotStart as error:
            why = str(error)
        else:
            compact_now = await self.in_pool(model_library.load_compaction)
            outcome, why = await self._run(compact_now, opened, running, ingredients, meter, watch)
        if why:
            text = f"Compaction failed; the conversation is unchanged: {why}"
            await self.in_pool(note, opened, text, kind="error")
            watch(SystemNote(text))
        await self.in_pool(finish_compaction, opened, spent=meter.spent, now=clock.now())
        return outcome

    def stop(self, session_id: str, *, marked: bool = False) -> bool:
        """Abort the turns that run here, of the session and all below it; what waits is folded in unanswered.

        ``marked``: the rows say already that it was stopped. False when nothing runs.
        """
        running = self._at_work(session_id)
        stop = _Stop(session_id, marked)
        for each in running:
            each.stopped = stop
            each.abort.abort()
        return bool(running)

    async def stop_tree(self, session_id: str, *, by: str = "") -> None:
        """The same, and the rows first, so that it also counts where nothing runs; ``by`` is told nothing."""
        for name in await self.in_pool(mark_stopped, session_id, by=by, now=clock.now()):
            self._on_waiting(name)
        self.stop(session_id, marked=True)

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

    def growing(self, session_id: str) -> GrowingRow | None:
        """The reply that streams here now, as far as it has come. From any thread."""
        running = self._running.get(session_id)
        recorder = running.recorder if running is not None else None
        return recorder.growing() if recorder is not None else None

    def wake(self, session_id: str) -> None:
        """On the event loop: something waits in the session's queue."""
        self._on_waiting(session_id)

    def is_at_work(self, session_id: str) -> bool:
        return session_id in self._running

    def shut_down(self) -> None:
        """The process ends: no turn starts any more, those that run are landed as if their process had died,
        and the ledger keeps them, so that whoever comes next goes on with them.
        """
        self._closing = True
        for running in list(self._running.values()):
            running.abort.abort(for_shutdown=True)

    def close(self) -> None:
        self._pool.shutdown(wait=True)

    def _at_work(self, session_id: str) -> list[_Running]:
        below = f"{session_id}>"
        return [
            running
            for name, running in list(self._running.items())
            if name == session_id or name.startswith(below)
        ]

    async def _work(self, session_id: str, running: _Running, watch: Watcher) -> TurnOutcome | None:
        outcome: TurnOutcome | None = None
        again = True
        try:
            while again and not self._closing:
                async with self._leases.hold(session_id.split(">", 1)[0]) as held:
                    outcome = await self._pass(session_id, held, running, watch) or outcome
                again = running.stopped is None and await self.in_pool(queue.wants_turn, session_id)
        except LeaseLostError as error:
            raise SessionUnreadable(f"This process no longer works the session: {error}") from error
        except OSError as error:  # what a crash left is mended on opening, which writes
            raise _unreadable(error) from error
        return outcome

    async def _pass(
        self, session_id: str, held: lease.Lease, running: _Running, watch: Watcher
    ) -> TurnOutcome | None:
        """Open the session, work off what waits, close it."""
        self._running[session_id] = running
        try:
            opened = await self.in_pool(open_session, session_id, home=self._home, held=held)
            self._tell(opened)
            if self._keeps_ledger:
                await self.in_pool(ledger.enter, session_id, held=held, now=clock.now())
            return await self._drain(opened, running, watch)
        finally:
            self._running.pop(session_id, None)
            if self._keeps_ledger and not self._closing:
                await self.in_pool(ledger.leave, session_id, held=held)

    async def _drain(self, opened: OpenSession, running: _Running, watch: Watcher) -> TurnOutcome | None:
        outcome: TurnOutcome | None = None
        while running.stopped is None and not self._closing and await self.in_pool(take_batch, opened):
            running.interrupted = False
            running.pending = list(opened.pending)
            running.abort = AbortToken()
            if running.stopped or self._closing:  # said while the batch was taken
                running.abort.abort(for_shutdown=self._closing)
            outcome = await self._turn(opened, running, watch)
            self._tell(opened)
        if running.stopped and not self._closing:
            await self._mark(running)
            await self.in_pool(fold_unanswered, opened, now=clock.now())
        return outcome

    async def _mark(self, running: _Running) -> None:
        """Have the rows say that it was stopped: once for each stop, and ahead of the end of the turns it ends."""
        stop = running.stopped
        if stop is None or stop.marked:
            return
        stop.marked = True
        for name in await self.in_pool(mark_stopped, stop.session_id, now=clock.now()):
            self._on_waiting(name)

    def _tell(self, opened: OpenSession) -> None:
        told, opened.to_wake = opened.to_wake, []
        for name in told:
            self._on_waiting(name)

    async def _turn(self, opened: OpenSession, running: _Running, watch: Watcher) -> TurnOutcome:
        try:
            ingredients = await self.in_pool(prepare, opened.row, home=self._home)
        except CannotStart as error:
            return await self._refuse(opened, str(error), watch)
        meter = _Meter()
        run_turn = await self.in_pool(model_library.load)
        outcome = await self._run(run_turn, opened, running, ingredients, meter, watch)
        if self._closing and outcome.status == "aborted":
            await self.in_pool(land_turn, opened, spent=meter.spent, now=clock.now())
            return outcome
        await self._mark(running)
        finish = partial(finish_turn, spent=meter.spent, context_tokens=meter.context, now=clock.now())
        await self.in_pool(finish, opened, outcome)
        return outcome

    def _take_in(self, seen: Seen) -> None:
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

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _tree_is_lost(self, root_id: str) -> None:
        for running in self._at_work(root_id):
            running.abort.abort()

    async def _run(
        self,
        work: Callable[..., Coroutine[Any, Any, Result]],
        opened: OpenSession,
        running: _Running,
        ingredients: Ingredients,
        meter: _Meter,
        watch: Watcher,
    ) -> Result:
        """``work`` (``run_turn`` or ``compact_now``) on the session's history, every event in its logs."""
        recorder = TurnRecorder(
            opened.log, opened.history, opened.rows, ui_chars=ingredients.limits.tool_result_ui_chars
        )

        running.recorder = recorder
        failure: OSError | LeaseLostError | None = None

        def emit(event: AgentEvent) -> None:
            nonlocal failure
            if failure is not None:
                return
            try:
                recorder.record(event)
            except (OSError, LeaseLostError) as error:
                # Not raised here: inside a model call it would count as the provider's failure and be retried.
                failure = error
                running.abort.abort()
                return
            meter.take(event)
            watch(event)

        host = TurnHost(
            session_id=opened.row.pk,
            access=ingredients.access,
            team=ingredients.team,
            home=self._home,
            result_chars=ingredients.limits.tool_result_chars,
            engine=self,
        )
        turn = Turn(
            agent_id=opened.row.agent_id,
            session_id=opened.row.pk,
            system_prompt=ingredients.system_prompt,
            history=opened.history,
            model=ingredients.model,
            tools=ingredients.tools,
            access=ingredients.access,
            view=ingredients.view,
            emit=emit,
            limits=ingredients.limits,
            context=ingredients.context,
            secret_env=ingredients.secret_env,
            web=ingredients.web,
            wants_interrupt=lambda: running.interrupted,
            extra_tools=[
                *ingredients.surface_tools,
                *tool_bundles.tools_for(host, names=ingredients.tools),
            ],
        )
        try:
            outcome = await work(turn, abort=running.abort)
        finally:
            opened.rows = recorder.rows
            opened.compacted |= recorder.compacted
            opened.log.memory = None
            running.recorder = None
        if failure is not None:
            raise failure
        opened.held.check()  # an abort because the lease was lost ends nothing: a successor answers
        return outcome

    async def _refuse(self, opened: OpenSession, text: str, watch: Watcher) -> TurnOutcome:
        """The session answers with what is wrong; the message counts as worked off."""
        outcome = TurnOutcome("failed", "", text)
        await self.in_pool(note, opened, text, kind="error")
        watch(TurnError("cannot_start", text))
        finish = partial(finish_turn, spent=Usage(0, 0), context_tokens=0, now=clock.now())
        await self.in_pool(finish, opened, outcome)
        watch(Complete("failed", "", 0))
        return outcome

    async def in_pool(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """A whole piece of database or file work; no connection is kept over it."""

        def whole() -> Result:
            try:
                return function(*args, **kwargs)
            finally:
                connections.close_all()

        return await asyncio.get_running_loop().run_in_executor(self._pool, whole)


def _unreadable(error: OSError) -> SessionUnreadable:
    return SessionUnreadable(
        f"The session's log can't be read or written: {error}. What was accepted is kept and worked when this "
        "is mended."
    )


class _Meter:
    """What a turn used: the sum of the replies, and how full the context was at the last call."""

    def __init__(self) -> None:
        self.spent = Usage(0, 0)
        self.context = 0

    def take(self, event: AgentEvent) -> None:
        if isinstance(event, Usage):
            self.spent = Usage(
                self.spent.input_tokens + event.input_tokens, self.spent.output_tokens + event.output_tokens
            )
            self.context = event.input_tokens + event.output_tokens
