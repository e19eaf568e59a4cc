"""The eight tools with which a session has other agents work for it, in sub-sessions. No Django up here.

An evaluation shows them in a process without Django, so the verbs are imported when one is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agents.tools.context import ToolError
from core import clock
from sessions_app.tool_bundles import Bundle, Host

if TYPE_CHECKING:
    from sessions_app.models import Session
    from sessions_app.sub_sessions import Listed

NAMES = (
    "start_session",
    "session_list",
    "query_session",
    "interrupt_session",
    "stop_session",
    "archive_session",
    "get_session_output",
    "continue_task",
)
AROUND_PAGE_CHARS = 500
"""Room for what stands around a page in a tool's result."""
COMES = "Its report comes to you as a message when it is done; go on with something else or end your turn."


def bundle() -> Bundle:
    return Bundle(NAMES, build)


def build(host: Host) -> Sequence[Callable[..., Any]]:
    async def start_session(agent: str, message: str, context: str = "", working_dir: str = "") -> str:
        """Have another agent of your team work on something in a session of its own.

        It runs beside you and knows nothing of your conversation. Its report comes to you as a message.

        Args:
            agent: The agent's id, one of your team.
            message: The task, with everything that is needed to do it.
            context: What it should know besides the task.
            working_dir: Where it works, relative to the workspace; empty: where you do.
        """
        from sessions_app import sub_sessions

        text = f"{message}\n\nContext:\n{context}" if context.strip() else message
        session = await told(
            host,
            sub_sessions.start,
            caller_id=host.session_id,
            agent_id=agent,
            message=text,
            working_dir=working_dir,
            team=host.team,
            home=host.home,
            now=clock.now(),
        )
        host.wake(session.pk)
        return f"Started {session.pk}. {COMES}"

    async def session_list() -> str:
        """List the sessions you started, and those that they started, with what each is doing."""
        from sessions_app import sub_sessions

        listed, count = await told(host, sub_sessions.listing, caller_id=host.session_id)
        lines = [_line(item, host.session_id) for item in listed]
        if count > len(listed):
            lines.append(f"[the newest {len(listed)} of {count}]")
        return "\n".join(lines) or "You have started no sessions."

    async def query_session(session_id: str, message: str) -> str:
        """Send a message to a session you started: a question, a correction, a further task.

        One that is at work takes it in after its current tool call; one that was stopped goes on with it.

        Args:
            session_id: Its whole id.
            message: What to say to it.
        """
        from sessions_app import sub_sessions

        session = await told(
            host,
            sub_sessions.query,
            caller_id=host.session_id,
            session_id=session_id,
            message=message,
            home=host.home,
            now=clock.now(),
        )
        host.wake(session.pk)
        return f"Sent to {session.pk}. {COMES}"

    async def interrupt_session(session_id: str) -> str:
        """Abort what a session you started is doing now, running commands included; its queue is worked next.

        Args:
            session_id: Its whole id.
        """
        session = await _found(host, session_id)
        if not host.interrupt(session.pk):
            return f"{session.pk} wasn't in the middle of a turn."
        return f"Interrupted {session.pk}. What waits in its queue is worked next."

    async def stop_session(session_id: str) -> str:
        """Stop a session you started and all that it started. A message starts it again.

        Args:
            session_id: Its whole id.
        """
        session = await _found(host, session_id)
        await host.stop(session.pk)
        return f"Stopped {session.pk} and what it had started. No report will come; query_session wakes it."

    async def archive_session(session_id: str) -> str:
        """Stop a session you started and all that it started for good, and clear their queues.

        Args:
            session_id: Its whole id.
        """
        from sessions_app import archive_session as verb

        session = await _found(host, session_id)
        count, to_wake = await told(
            host, verb.archive_session, session.pk, by=host.session_id, now=clock.now()
        )
        await host.stop(session.pk)
        for name in to_wake:
            host.wake(name)
        return f"Archived {session.pk}: {count} session{'' if count == 1 else 's'} in all."

    async def get_session_output(session_id: str, offset: int = 0) -> str:
        """Read the last final text of a session you started, whole, in pieces.

        Args:
            session_id: Its whole id.
            offset: How many characters to skip.
        """
        from sessions_app import sub_sessions
        from sessions_app.tree_view import state_of

        session, text = await told(
            host,
            sub_sessions.output_of,
            caller_id=host.session_id,
            session_id=session_id,
            now=clock.now(),
        )
        state = state_of(session)
        if not text:
            return f"{session.pk} ({state}) has finished no turn with a text yet."
        return f"{session.pk} ({state}):\n{page(text, offset, host.result_chars)}"

    async def continue_task(session_id: str, note: str = "") -> str:
        """Have a session you started go on where it was stopped, interrupted or cut off by an error.

        Args:
            session_id: Its whole id.
            note: What to tell it besides.
        """
        from sessions_app import sub_sessions

        session = await told(
            host,
            sub_sessions.go_on,
            caller_id=host.session_id,
            session_id=session_id,
            note=note,
            home=host.home,
            now=clock.now(),
        )
        host.wake(session.pk)
        return f"{session.pk} goes on. {COMES}"

    return [
        start_session,
        session_list,
        query_session,
        interrupt_session,
        stop_session,
        archive_session,
        get_session_output,
        continue_task,
    ]


def page(text: str, offset: int, result_chars: int) -> str:
    """One piece of a long text that fits into a result, and how to get the next."""
    if not 0 <= offset < len(text):
        raise ToolError(f"offset must lie between 0 and {len(text) - 1}.")
    piece = text[offset : offset + max(result_chars - AROUND_PAGE_CHARS, result_chars // 2)]
    end = offset + len(piece)
    if end == len(text) and offset == 0:
        return piece
    more = f"; go on with offset={end}" if end < len(text) else ""
    return f"{piece}\n[characters {offset + 1:,} to {end:,} of {len(text):,}{more}]"


async def told(host: Host, verb: Callable[..., Any], *args: Any, **values: Any) -> Any:
    """The verb's result; what it refuses is what the model is told."""
    from sessions_app.errors import SessionRefused

    try:
        return await host.call(verb, *args, **values)
    except SessionRefused as error:
        raise ToolError(str(error)) from error


async def _found(host: Host, session_id: str) -> Session:
    from sessions_app import sub_sessions

    found: Session = await told(host, sub_sessions.find, caller_id=host.session_id, session_id=session_id)
    return found


def _line(item: Listed, caller_id: str) -> str:
    session = item.session
    depth = session.pk.count(">") - caller_id.count(">") - 1
    return f"{'  ' * depth}- {session.pk} ({session.agent_id}), {item.state}: {item.title}"
