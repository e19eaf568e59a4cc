"""An agent at work on an open session's history, every event in the session's logs before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agents.events import AgentEvent, Usage
from agents.turn import Turn
from sessions_app import tool_bundles
from sessions_app.logs import LeaseLostError, TurnRecorder
from sessions_app.opened_session import OpenSession
from sessions_app.prepare import Ingredients
from sessions_app.running_sessions import Running, RunningSessions
from sessions_app.turn_host import TurnHost

Result = TypeVar("Result")


@dataclass(slots=True)
class Used:
    """The sum of the replies, and how full the context was at the last model call; in tokens."""

    spent: Usage = field(default_factory=lambda: Usage(0, 0))
    context: int = 0

    def take(self, event: AgentEvent) -> None:
        if isinstance(event, Usage):
            self.spent = Usage(
                self.spent.input_tokens + event.input_tokens, self.spent.output_tokens + event.output_tokens
            )
            self.context = event.input_tokens + event.output_tokens


async def run_recorded(
    work: Callable[..., Coroutine[Any, Any, Result]],
    ingredients: Ingredients,
    opened: OpenSession,
    running: Running,
    sessions: RunningSessions,
) -> tuple[Result, Used]:
    """What ``work`` (``run_turn`` or ``compact_now``) came to, and what it used.

    Raises LeaseLostError when a successor has the session, OSError when the log can't be written.
    """
    recorder = TurnRecorder(
        opened.log, opened.history, opened.rows, ui_chars=ingredients.limits.tool_result_ui_chars
    )
    record = _Record(recorder, running)
    running.recorder = recorder
    try:
        outcome = await work(_turn(ingredients, opened, running, sessions, record), abort=running.abort)
    finally:
        opened.rows = recorder.rows
        opened.compacted |= recorder.compacted
        opened.log.memory = None
        running.recorder = None
    if record.failure is not None:
        raise record.failure
    opened.held.check()  # an abort because the lease was lost ends nothing: a successor answers
    return outcome, record.used


class _Record:
    """``Turn.emit``. The first event that can't be recorded ends the run, and what follows is nobody's."""

    def __init__(self, recorder: TurnRecorder, running: Running) -> None:
        self._recorder = recorder
        self._running = running
        self.used = Used()
        self.failure: OSError | LeaseLostError | None = None

    def __call__(self, event: AgentEvent) -> None:
        if self.failure is not None:
            return
        try:
            self._recorder.record(event)
        except (OSError, LeaseLostError) as error:
            # Not raised here: inside a model call it would count as the provider's failure and be retried.
            self.failure = error
            self._running.abort.abort()
            return
        self.used.take(event)
        self._running.watch(event)


def _turn(
    ingredients: Ingredients,
    opened: OpenSession,
    running: Running,
    sessions: RunningSessions,
    record: _Record,
) -> Turn:
    host = TurnHost(
        session_id=opened.row.pk,
        access=ingredients.access,
        team=ingredients.team,
        home=sessions.home,
        result_chars=ingredients.limits.tool_result_chars,
        sessions=sessions,
    )
    return Turn(
        agent_id=opened.row.agent_id,
        session_id=opened.row.pk,
        system_prompt=ingredients.system_prompt,
        history=opened.history,
        model=ingredients.model,
        tools=ingredients.tools,
        access=ingredients.access,
        view=ingredients.view,
        emit=record,
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
