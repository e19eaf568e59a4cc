"""The history of an open session shortened on request, without a turn."""

from __future__ import annotations

from agents.compaction import Outcome as Compaction
from agents.events import SystemNote
from core import clock
from sessions_app import model_library
from sessions_app.finish_turn import finish_compaction
from sessions_app.opened_session import OpenSession, note
from sessions_app.prepare import CannotStart, prepare
from sessions_app.recorded_run import Used, run_recorded
from sessions_app.running_sessions import Running, RunningSessions


async def shorten(opened: OpenSession, running: Running, sessions: RunningSessions) -> Compaction:
    """What failed is said in the session's log, and the history is as it was.

    Raises LeaseLostError, and OSError when the log can't be written.
    """
    outcome: Compaction = "failed"
    used = Used()
    try:
        ingredients = await sessions.in_pool(prepare, opened.row, home=sessions.home)
    except CannotStart as error:
        why = str(error)
    else:
        compact_now = await sessions.in_pool(model_library.load_compaction)
        (outcome, why), used = await run_recorded(compact_now, ingredients, opened, running, sessions)
    if why:
        text = f"Compaction failed; the conversation is unchanged: {why}"
        await sessions.in_pool(note, opened, text, kind="error")
        running.watch(SystemNote(text))
    await sessions.in_pool(finish_compaction, opened, spent=used.spent, now=clock.now())
    return outcome
