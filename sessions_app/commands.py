"""Commands in chat: a registry that the upper floors fill, with the checks before each handler.

``register`` is called in an ``AppConfig.ready``. Commands act at once and never wait in the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sessions_app.models import Session

_COMMAND = re.compile(r"/([a-z][a-z0-9-]*)(?:\s+(.*))?\Z", re.DOTALL)
_LEVELS = ("readonly", "workspace", "full")


@dataclass(frozen=True, slots=True)
class CommandContext:
    """``user`` is None for the person at this machine's terminal, who may do everything here.

    ``stop`` aborts the turn of this session wherever it runs in this process; False when none runs.
    """

    session: Session
    argument: str
    user: Any
    now: datetime
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class CommandResult:
    """``text`` is one system line (or a few) for the person; ``session_id`` is set when another one follows.

    ``ok`` is False for a refusal.
    """

    text: str
    ok: bool = True
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """``level``: the least access level of the session. ``permission``: of the user, ``app.codename``."""

    level: str = "readonly"
    permission: str = ""
    root: bool = False


Handler = Callable[[CommandContext], CommandResult]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    handler: Handler
    usage: str
    needs: Needs = field(default_factory=Needs)


_registry: dict[str, Command] = {}
NO_NEEDS = Needs()


def register(name: str, handler: Handler, *, usage: str = "", needs: Needs = NO_NEEDS) -> None:
    """Make ``/name`` known; ``usage`` is its line in ``/help``. The same name again replaces it."""
    _registry[name] = Command(name, handler, usage or f"/{name}", needs)


def known() -> list[Command]:
    return [_registry[name] for name in sorted(_registry)]


def is_command(text: str) -> bool:
    """Whether ``text`` has the form of a command (``/etc/hosts is wrong`` hasn't)."""
    return _COMMAND.match(text.strip()) is not None


def run(
    text: str,
    *,
    session: Session,
    user: Any = None,
    may: Callable[[str], bool] | None = None,
    now: datetime,
    stop: Callable[[], bool] = lambda: False,
) -> CommandResult:
    """Run the command in ``text``; a refusal says why, and then nothing was changed.

    ``may`` tells which permissions the caller has, where that is less than what ``user`` has (a token).

    ValueError when ``text`` isn't a command (ask ``is_command`` first).
    """
    found = _COMMAND.match(text.strip())
    if found is None:
        raise ValueError("Not a command.")
    name, argument = found.group(1), (found.group(2) or "").strip()
    command = _registry.get(name)
    if command is None:
        return CommandResult(f"There is no command /{name}. /help lists those there are.", ok=False)
    reason = _refusal(command, session, user, may)
    if reason:
        return CommandResult(reason, ok=False)
    return command.handler(CommandContext(session, argument, user, now, stop))


def _refusal(command: Command, session: Session, user: Any, may: Callable[[str], bool] | None) -> str:
    needs = command.needs
    if needs.root and not session.is_root:
        return f"/{command.name} works in a root session only; this one was started by another session."
    if _LEVELS.index(session.access_level) < _LEVELS.index(needs.level):
        return (
            f"/{command.name} needs access level {needs.level}; this session has {session.access_level}. "
            "A person with the right to may raise it."
        )
    may = may or (user.has_perm if user is not None else None)
    if needs.permission and may is not None and not may(needs.permission):
        return f"/{command.name} needs the permission {needs.permission}, which {user} lacks."
    return ""
