"""Works the turns of root sessions in this process: lease, queue, turn, save, until nothing waits.

All database and file work runs as whole synchronous functions in a bounded thread pool; the event loop only
sees the turn itself, whose save points are plain appends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import connections

from agents.abort import AbortToken
from agents.events import AgentEvent, Complete, TurnError, Usage
from agents.turn import Turn, TurnOutcome
from core import clock
from core.paths import HaloHome
from sessions_app import lease, model_library, queue, tool_bundles
from sessions_app.errors import SessionUnreadable
from sessions_app.logs import LeaseLostError, TurnRecorder
from sessions_app.open_session import (
    OpenSession,
    close_session,
    finish_turn,
    fold_unanswered,
    note,
    open_session,
    take_batch,
)
from sessions_app.prepare import CannotStart, Ingredients, prepare
from sessions_app.turn_host import TurnHost

logger = logging.getLogger(__name__)

LOOK_FOR_MESSAGES_SEC = 1.0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Watcher = Callable[[AgentEvent], None]


@dataclass(slots=True)
class _Running:
    """What others may do to a session that works here; read and set from any thread."""

    abort: AbortToken = field(default_factory=AbortToken)
    stopped: bool = False
    interrupted: bool = False


class Engine:
    """One per process. ``work`` may be called for any number of sessions at once, once for each."""

    def __init__(self, *, home: HaloHome, threads: int = 4) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="session-db")
        self._running: dict[str, _Running] = {}

    async def work(self, session_id: str, *, watch: Watcher = lambda _event: None) -> TurnOutcome | None:
        """Work off everything that waits; the last turn's outcome, None when nothing asked for one.

        ``watch`` sees every event after the log has it. Raises SessionHeld when another process works the
        session (the message stays queued and that process takes it), SessionRefused, SessionUnreadable.
        """
        outcome: TurnOutcome | None = None
        again = True
        while again:
            opened = await self._open(session_id)
            running = self._running[session_id] = _Running()
            keeper = asyncio.create_task(self._keep(opened, running))
            try:
                outcome = await self._drain(opened, running, watch) or outcome
            except LeaseLostError as error:
                raise SessionUnreadable(f"This process no longer works the session: {error}") from error
            except OSError as error:
                raise _unreadable(error, "written") from error
            finally:
                keeper.cancel()
                self._running.pop(session_id, None)
                again = await self._in_pool(close_session, opened)
            again = again and not running.stopped
        return outcome

    async def _open(self, session_id: str) -> OpenSession:
        try:
            return await self._in_pool(open_session, session_id, home=self._home)
        except OSError as error:  # what a crash left is mended on opening, which writes
            raise _unreadable(error, "opened") from error

    def stop(self, session_id: str) -> bool:
        """Abort the turn that runs here; what waits is folded in unanswered. False when nothing runs."""
        running = self._running.get(session_id)
        if running is None:
            return False
        running.stopped = True
        running.abort.abort()
        return True

    def interrupt_softly(self, session_id: str) -> None:
        """A message was queued: after the tool call that runs, the turn unwinds and takes it in."""
        running = self._running.get(session_id)
        if running is not None:
            running.interrupted = True

    def close(self) -> None:
        self._pool.shutdown(wait=True)

    async def _drain(self, opened: OpenSession, running: _Running, watch: Watcher) -> TurnOutcome | None:
        outcome: TurnOutcome | None = None
        while not running.stopped and await self._in_pool(take_batch, opened):
            running.interrupted = False
            outcome = await self._turn(opened, running, watch)
        if running.stopped:
            await self._in_pool(fold_unanswered, opened, now=clock.now())
        return outcome

    async def _turn(self, opened: OpenSession, running: _Running, watch: Watcher) -> TurnOutcome:
        try:
            ingredients = await self._in_pool(prepare, opened.row, home=self._home)
        except CannotStart as error:
            return await self._refuse(opened, str(error), watch)
        meter = _Meter()
        outcome = await self._run(opened, running, ingredients, meter, watch)
        finish = partial(finish_turn, spent=meter.spent, context_tokens=meter.context, now=clock.now())
        await self._in_pool(finish, opened, outcome)
        return outcome

    async def _run(
        self,
        opened: OpenSession,
        running: _Running,
        ingredients: Ingredients,
        meter: _Meter,
        watch: Watcher,
    ) -> TurnOutcome:
        run_turn = await self._in_pool(model_library.load)
        recorder = TurnRecorder(
            opened.log, opened.history, opened.rows, ui_chars=ingredients.limits.tool_result_ui_chars
        )

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

        host = TurnHost(opened.row.pk, ingredients.access, ingredients.team, self._in_pool)
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
            wants_interrupt=lambda: running.interrupted,
            extra_tools=tool_bundles.tools_for(host, names=ingredients.tools),
        )
        try:
            outcome = await run_turn(turn, abort=running.abort)
        finally:
            opened.rows = recorder.rows
            opened.compacted |= recorder.compacted
            opened.log.memory = None
        if failure is not None:
            raise failure
        return outcome

    async def _refuse(self, opened: OpenSession, text: str, watch: Watcher) -> TurnOutcome:
        """The session answers with what is wrong; the message counts as worked off."""
        outcome = TurnOutcome("failed", "", text)
        await self._in_pool(note, opened, text, kind="error")
        watch(TurnError("cannot_start", text))
        finish = partial(finish_turn, spent=Usage(0, 0), context_tokens=0, now=clock.now())
        await self._in_pool(finish, opened, outcome)
        watch(Complete("failed", "", 0))
        return outcome

    async def _keep(self, opened: OpenSession, running: _Running) -> None:
        """Renew the lease, and look for messages that other processes accepted."""
        renewed_at = clock.suspended_seconds()
        while True:
            await asyncio.sleep(LOOK_FOR_MESSAGES_SEC)
            try:
                if clock.suspended_seconds() - renewed_at >= lease.RENEW_SEC:
                    if not await self._in_pool(lease.renew, opened.held):
                        running.abort.abort()
                        return
                    renewed_at = clock.suspended_seconds()
                pending = list(opened.pending)
                if await self._in_pool(queue.wants_turn, opened.row.pk, beside=pending):
                    running.interrupted = True
            except Exception:  # the lease's own deadline ends the writing if this goes on
                logger.exception("Session %s: lease and queue could not be looked after", opened.row.pk)

    async def _in_pool(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        def whole() -> Result:
            try:
                return function(*args, **kwargs)
            finally:
                connections.close_all()

        return await asyncio.get_running_loop().run_in_executor(self._pool, whole)


def _unreadable(error: OSError, what: str) -> SessionUnreadable:
    return SessionUnreadable(
        f"The session's log can't be {what}: {error}. What was accepted is kept and worked when this is mended."
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
