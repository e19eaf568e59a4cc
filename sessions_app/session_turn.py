"""One turn of an open session: prepared, run, and brought to its end in the rows."""

from __future__ import annotations

from functools import partial

from agents.events import Complete, TurnError, Usage
from agents.turn import TurnOutcome
from core import clock
from sessions_app import model_library
from sessions_app.finish_turn import finish_turn, land_turn
from sessions_app.opened_session import OpenSession, note
from sessions_app.prepare import CannotStart, prepare
from sessions_app.recorded_run import run_recorded
from sessions_app.running_sessions import Running, RunningSessions


async def take_turn(opened: OpenSession, running: Running, sessions: RunningSessions) -> TurnOutcome:
    """Answer what stands in the history. A shutdown in the middle leaves the turn to the next process.

    Raises LeaseLostError, and OSError when the log can't be written; then nothing is marked as answered.
    """
    try:
        ingredients = await sessions.in_pool(prepare, opened.row, home=sessions.home)
    except CannotStart as error:
        return await _refuse(opened, str(error), running, sessions)
    run_turn = await sessions.in_pool(model_library.load)
    outcome, used = await run_recorded(run_turn, ingredients, opened, running, sessions)
    if sessions.closing and outcome.status == "aborted":
        await sessions.in_pool(land_turn, opened, spent=used.spent, now=clock.now())
        return outcome
    await sessions.mark(running)
    finish = partial(finish_turn, spent=used.spent, context_tokens=used.context, now=clock.now())
    await sessions.in_pool(finish, opened, outcome)
    return outcome


async def _refuse(opened: OpenSession, text: str, running: Running, sessions: RunningSessions) -> TurnOutcome:
    """The session answers with what is wrong; the message counts as worked off."""
    outcome = TurnOutcome("failed", "", text)
    await sessions.in_pool(note, opened, text, kind="error")
    running.watch(TurnError("cannot_start", text))
    finish = partial(finish_turn, spent=Usage(0, 0), context_tokens=0, now=clock.now())
    await sessions.in_pool(finish, opened, outcome)
    running.watch(Complete("failed", "", 0))
    return outcome
