"""The five tools with which a session works with root sessions of other workspaces. No Django up here.

An agent has all five when it lists ``relay_send``; sessions below ``full`` are offered none. They need the
server, for the other session is worked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from agents.tools.context import ToolError
from core import clock
from sessions_app.session_tools import page, told
from sessions_app.tool_bundles import Bundle, Host

if TYPE_CHECKING:
    from sessions_app.models import Session
    from sessions_app.worker import Worker

NAMES = ("relay_send", "relay_interrupt", "relay_stop", "relay_read", "relay_list")
NOT_HERE = (
    "Relay only works inside the server, and this session runs in another process (such as halo chat). Do not try "
    "again; say that the session has to be opened in the browser."
)


def bundle() -> Bundle:
    return Bundle(NAMES, build, level="full", gate="relay_send")


def build(host: Host) -> Sequence[Callable[..., Any]]:
    async def relay_send(message: str, workspace: str = "", session_id: str = "", agent: str = "") -> str:
        """Send a message to a root session of any workspace, or start a new one there.

        Its report comes to you as a message: completed, aborted, or still running when another turn follows.

        Args:
            message: What to say, with everything that is needed: it knows nothing of your conversation.
            workspace: Number or path of the workspace; needed for a new session.
            session_id: The session to go on with, as relay_list shows it; empty: a new one.
            agent: Who works in a new session; empty: the workspace's first agent.
        """
        worker = _worker()
        from sessions_app import relay

        target, to_wake = await told(
            host,
            relay.send,
            caller_id=host.session_id,
            workspace=workspace,
            session_id=session_id,
            agent_id=agent,
            message=message,
            home=host.home,
            now=clock.now(),
        )
        for name in to_wake:
            worker.wake(name)
        if not target.is_root:
            return f"Sent to {target.pk}. It is a sub-session: its report goes to its parent, not to you."
        return f"Sent to {target.pk} in {target.workspace.path}. Its report comes to you as a message."

    async def relay_interrupt(session_id: str) -> str:
        """Abort what a session of any workspace is doing now; its queue is worked next.

        Args:
            session_id: Its whole id.
        """
        worker = _worker()
        session = await _found(host, session_id)
        if not await host.call(worker.interrupt, session.pk):
            return f"{session.pk} wasn't in the middle of a turn."
        return f"Interrupted {session.pk}. What waits in its queue is worked next."

    async def relay_stop(session_id: str) -> str:
        """Stop a session of any workspace and all that it started. Who waits for its outcome is told.

        Args:
            session_id: Its whole id.
        """
        worker = _worker()
        session = await _found(host, session_id)
        if not await host.call(worker.stop, session.pk):
            return f"Nothing ran in {session.pk}."
        return f"Stopped {session.pk} and what it had started."

    async def relay_read(session_id: str, offset: int = 0) -> str:
        """Read what a session of any workspace is doing and its last final text, in pieces.

        Args:
            session_id: Its whole id.
            offset: How many characters to skip.
        """
        _worker()
        from sessions_app import relay

        session, state, text = await told(
            host, relay.output_of, caller_id=host.session_id, session_id=session_id, now=clock.now()
        )
        if not text:
            return f"{session.pk} ({state}) has finished no turn with a text yet."
        return f"{session.pk} ({state}):\n{page(text, offset, host.result_chars)}"

    async def relay_list(workspace: str = "") -> str:
        """List root sessions, the last active first, at most 100.

        Args:
            workspace: Number or path of one workspace; empty: all of them.
        """
        _worker()
        from sessions_app import relay

        rows = await told(host, relay.listing, caller_id=host.session_id, workspace=workspace)
        lines = [
            f"- {row.pk} ({row.agent_id}) in {row.workspace.path}, {state}: {title}"
            for row, state, title in rows
        ]
        return "\n".join(lines) or "There are no sessions."

    return [relay_send, relay_interrupt, relay_stop, relay_read, relay_list]


def _worker() -> Worker:
    from sessions_app.errors import NotInServer
    from sessions_app.worker import worker

    try:
        return worker()
    except NotInServer as error:
        raise ToolError(NOT_HERE) from error


async def _found(host: Host, session_id: str) -> Session:
    from sessions_app import relay

    found: Session = await told(host, relay.find, caller_id=host.session_id, session_id=session_id)
    return found
