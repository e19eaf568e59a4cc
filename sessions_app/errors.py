"""What can go wrong with a session, sorted by who must act.

::

    SessionError (code)
    ├── SessionRefused      the caller asked for what can't be: says what and why
    │   ├── QueueFull       too many messages of agents wait
    │   ├── SessionHeld     another process works this session now
    │   └── NotInServer     only the web process can do this
    └── SessionUnreadable   its files can't be read or written: an operator must look
"""

from __future__ import annotations

from core.processes import ProcessIdentity


class SessionError(Exception):
    """``code`` is stable; the text says what happened and what to do."""

    code = "session_error"


class SessionRefused(SessionError):
    code = "refused"

    def __init__(self, text: str, code: str = "refused") -> None:
        super().__init__(text)
        self.code = code


class QueueFull(SessionRefused):
    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count} messages already wait in this session; wait until it has worked them off.", "queue_full"
        )
        self.count = count


class SessionHeld(SessionRefused):
    """``owner`` is the process that holds the lease; what was queued wakes it."""

    def __init__(self, session_id: str, owner: ProcessIdentity | None) -> None:
        who = f"process {owner.pid} on {owner.host}" if owner else "another process"
        super().__init__(f"Session {session_id} is being worked by {who}.", "session_held")
        self.owner = owner


class NotInServer(SessionRefused):
    def __init__(self) -> None:
        super().__init__(
            "This works only inside the server (halo up); trying again here will not help.", "not_in_server"
        )


class SessionUnreadable(SessionError):
    code = "session_unreadable"
