"""A person's message to a session: checked, stored, and its session woken; a command is run at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from core.db.callers import Caller
from sessions_app import commands, queue
from sessions_app.commands import CommandResult, Place
from sessions_app.end_turn import Way, end_turn
from sessions_app.errors import NotInServer, SessionRefused
from sessions_app.lease import live_holder
from sessions_app.models import Session
from sessions_app.worker import worker

CHAT = "workspaces.chat"
USE_FULL_ACCESS = "workspaces.use_full_access"
REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Sent:
    """``stamp`` of the stored message; ``answer`` when it was a command, which is stored nowhere."""

    stamp: str = ""
    answer: CommandResult | None = None


def send_message(
    *,
    session: Session,
    text: str,
    images: Sequence[dict[str, Any]] = (),
    client_id: str,
    caller: Caller,
    now: datetime,
) -> Sent:
    """When this returns it may be acknowledged. ``images`` as ``checked_images`` returns them.

    The same ``client_id`` again changes nothing and gets the same answer. Raises SessionRefused (``forbidden``
    and the queue's codes), and then nothing was changed.
    """
    check_may_send(session, caller)
    if commands.is_command(text) and not images:
        answer = _run_once(session, text, client_id, caller, now)
        if not answer.send:
            return Sent(answer=answer)
        text = answer.send
    accepted = queue.accept(session=session, text=text, images=images, client_id=client_id, now=now)
    with suppress(NotInServer):  # stored all the same: the server's worker looks for it
        worker().wake(session.pk)
    return Sent(stamp=accepted.stamp)


def check_may_send(session: Session, caller: Caller) -> None:
    """Raises SessionRefused ``forbidden`` with what is missing."""
    missing = missing_to_send(session, caller)
    if missing:
        raise SessionRefused(
            f"You may not write in this session: the permission {missing} is needed, which an administrator "
            "can give (a token also needs its scope).",
            "forbidden",
        )


def missing_to_send(session: Session, caller: Caller) -> str:
    """The permission that ``caller`` lacks to send to this session; empty when none."""
    wanted = [CHAT]
    if session.access_level == Session.AccessLevel.FULL:
        wanted.append(USE_FULL_ACCESS)
    return next((permission for permission in wanted if not caller.may(permission)), "")


def _run_once(session: Session, text: str, client_id: str, caller: Caller, now: datetime) -> CommandResult:
    def run() -> CommandResult:
        return commands.run(
            text,
            session=session,
            user=caller.user,
            may=caller.may,
            now=now,
            place=_place(session, caller, now),
        )

    return _answers.once((session.pk, client_id), run)


def _place(session: Session, caller: Caller, now: datetime) -> Place:
    return Place(
        stop=lambda: _ended(session, "stop", caller, now),
        interrupt=lambda: _ended(session, "interrupt", caller, now),
        compact=lambda: _compact(session),
    )


def _ended(session: Session, way: Way, caller: Caller, now: datetime) -> bool:
    """False when nothing ran or waited, or outside a server."""
    try:
        end_turn(session, way, user=caller.user, now=now)
    except SessionRefused:
        return False
    return True


def _compact(session: Session) -> CommandResult:
    """Begun in the background: it takes as long as a model call. Raises NotInServer, SessionRefused."""
    if worker().is_at_work(session.pk) or live_holder(session.root_id) is not None:
        raise SessionRefused("The session is at work; it compacts by itself when it has to.", "busy")
    worker().compact(session.pk)
    return CommandResult("Compacting; what comes of it stands in the conversation.")


class _Answers:
    """The last commands' answers, so that one sent again isn't run again.

    Sent again while it runs (a form posted twice), it waits for the same answer.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Future[CommandResult]] = OrderedDict()
        self._lock = Lock()

    def once(self, key: tuple[str, str], run: Callable[[], CommandResult]) -> CommandResult:
        """The answer of the run before, or of the one under way.

        What ``run`` raises is raised to everybody who waits, and not kept.
        """
        mine: Future[CommandResult] = Future()
        with self._lock:
            known = self._kept.setdefault(key, mine)
            while len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)
        if known is not mine:
            return known.result()
        try:
            answer = run()
        except BaseException as error:
            with self._lock:
                self._kept.pop(key, None)
            mine.set_exception(error)
            raise
        mine.set_result(answer)
        return answer


_answers = _Answers()
