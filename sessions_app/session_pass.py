"""One session's pass under the lease of its tree: opened, then worked until nothing waits, or shortened."""

from __future__ import annotations

from agents.abort import AbortToken
from agents.compaction import Outcome as Compaction
from agents.turn import TurnOutcome
from core import clock
from sessions_app import ledger
from sessions_app.lease import Lease
from sessions_app.open_session import open_session
from sessions_app.opened_session import OpenSession
from sessions_app.running_sessions import Running, RunningSessions
from sessions_app.session_compaction import shorten
from sessions_app.session_turn import take_turn
from sessions_app.take_batch import fold_unanswered, take_batch


async def work_off(
    session_id: str, running: Running, *, held: Lease, sessions: RunningSessions
) -> TurnOutcome | None:
    """The last turn's outcome, None when nothing asked for one.

    Raises SessionRefused, SessionUnreadable, LeaseLostError, OSError.
    """
    try:
        with sessions.at_work(session_id, running):
            opened = await _opened(session_id, held, sessions)
            if sessions.keeps_ledger:
                await sessions.in_pool(ledger.enter, session_id, held=held, now=clock.now())
            return await _drain(opened, running, sessions)
    finally:
        if sessions.keeps_ledger and not sessions.closing:
            await sessions.in_pool(ledger.leave, session_id, held=held)


async def compact(session_id: str, running: Running, *, held: Lease, sessions: RunningSessions) -> Compaction:
    """Raises as ``work_off`` does. The caller says that the session is at work."""
    opened = await _opened(session_id, held, sessions)
    outcome = await shorten(opened, running, sessions)
    await _fold_if_stopped(opened, running, sessions)
    return outcome


async def _opened(session_id: str, held: Lease, sessions: RunningSessions) -> OpenSession:
    opened = await sessions.in_pool(open_session, session_id, home=sessions.home, held=held)
    sessions.wake_told(opened)
    return opened


async def _drain(opened: OpenSession, running: Running, sessions: RunningSessions) -> TurnOutcome | None:
    outcome: TurnOutcome | None = None
    while running.stopped is None and not sessions.closing and await sessions.in_pool(take_batch, opened):
        running.interrupted = False
        running.pending = list(opened.pending)
        running.abort = AbortToken()
        if running.stopped or sessions.closing:  # said while the batch was taken
            running.abort.abort(for_shutdown=sessions.closing)
        outcome = await take_turn(opened, running, sessions)
        sessions.wake_told(opened)
    await _fold_if_stopped(opened, running, sessions)
    return outcome


async def _fold_if_stopped(opened: OpenSession, running: Running, sessions: RunningSessions) -> None:
    if running.stopped and not sessions.closing:
        await sessions.mark(running)
        await sessions.in_pool(fold_unanswered, opened, now=clock.now())
