"""Commands in chat: a registry that the upper floors fill, with the checks before each handler.

``register`` is called in an ``AppConfig.ready``. Commands act at once and never wait in the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents.turn import AccessLevel
from sessions_app.levels import LEVELS, effective_level
from sessions_app.models import Session

_COMMAND = re.compile(r"/([a-z0-9][a-z0-9_-]*)(?:\s+(.*))?\Z", re.DOTALL)


def _nothing_runs() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Place:
    """What the place a command was given in can do with the session.

    ``stop`` and ``interrupt`` end the turn wherever it runs; False when none does. ``compact`` shortens the
    history, now or in the background, and says which; None where nothing works sessions.
    """

    stop: Callable[[], bool] = _nothing_runs
    interrupt: Callable[[], bool] = _nothing_runs
    compact: Callable[[], CommandResult] | None = None


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class CommandContext:
    """``user`` is None for the person at this machine's terminal, who may do everything here.

    ``may`` says whether the caller has a permission; a token has less than its user.
    """

    session: Session
    argument: str
    user: Any
    now: datetime
    place: Place = NOWHERE
    may: Callable[[str], bool] = lambda _permission: True


@dataclass(frozen=True, slots=True)
class CommandResult:
    """``text`` is one system line (or a few) for the person; ``session_id`` is set when another one follows.

    ``ok`` is False for a refusal. ``send``: the command stands for this message to the session, which whoever
    ran the command accepts as if the person had written it.
    """

    text: str
    ok: bool = True
    session_id: str = ""
    send: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """``level``: the least access level of the session. ``permission``: of the user, ``app.codename``."""

    level: AccessLevel = "readonly"
    permission: str = ""
    root: bool = False


Handler = Callable[[CommandContext], CommandResult]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    handler: Handler
    usage: str
    needs: Needs = field(default_factory=Needs)


Finder = Callable[[Session], list[Command]]
_registry: dict[str, Command] = {}
_finders: list[Finder] = []
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
    place: Place = NOWHERE,
) -> CommandResult:
    """Run the command in ``text``; a refusal says why, and then nothing was changed.

    ``may`` tells which permissions the caller has, where that is less than what ``user`` has (a token).

    ValueError when ``text`` isn't a command (ask ``is_command`` first).
    """
    found = _COMMAND.match(text.strip())
    if found is None:
        raise ValueError("Not a command.")
    name, argument = found.group(1), (found.group(2) or "").strip()
    may = may or (user.has_perm if user is not None else lambda _permission: True)
    context = CommandContext(session, argument, user, now, place, may)
    command = _registry.get(name)
    if command is None:
        return _of_session(name, context)
    reason = _refusal(command, context)
    if reason:
        return CommandResult(reason, ok=False)
    return command.handler(context)


def register_finder(finder: Finder) -> None:
    """Have ``finder`` asked for the commands that a session has beside the ones registered for all."""
    if finder not in _finders:
        _finders.append(finder)


def of_session(session: Session) -> list[Command]:
    """The commands that only this session has; one registered for all hides one of the same name."""
    found = [command for finder in _finders for command in finder(session)]
    return [command for command in found if command.name not in _registry]


def _of_session(name: str, context: CommandContext) -> CommandResult:
    command = next((each for each in of_session(context.session) if each.name == name), None)
    if command is None:
        return CommandResult(f"There is no command /{name}. /help lists those there are.", ok=False)
    return command.handler(context)


def _refusal(command: Command, context: CommandContext) -> str:
    session, needs = context.session, command.needs
    if needs.root and not session.is_root:
        return f"/{command.name} works in a root session only; this one was started by another session."
    level = effective_level(session)
    if LEVELS.index(level) < LEVELS.index(needs.level):
        return (
            f"/{command.name} needs access level {needs.level}; this session has {level}. "
            "A person with the right to may raise it."
        )
    if needs.permission and not context.may(needs.permission):
        return f"/{command.name} needs the permission {needs.permission}, which {context.user} lacks."
    return ""
