"""One session in the terminal: ``halo chat``."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Coroutine
from itertools import dropwhile
from typing import Any, Literal, TypeVar

from agents.turn import TurnOutcome
from core import clock
from core.paths import HaloHome
from sessions_app import commands, queue
from sessions_app.commands import CommandResult, Place
from sessions_app.errors import SessionError, SessionHeld
from sessions_app.logs import Row, read_session
from sessions_app.models import QueuedMessage, Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.selectors import find_session
from sessions_app.terminal_view import PlainView, RichView, View
from sessions_app.tree_work import TreeWork

LOOK_AGAIN_SEC = 0.5
INTERRUPTED = 130

Result = TypeVar("Result")


class Chat:
    """``user`` is who asked for it by ``--as``; None is the person at this machine's terminal."""

    def __init__(self, session: Session, *, home: HaloHome, user: Any = None) -> None:
        self.session = session
        self._user = user
        self._view: View = RichView() if sys.stdout.isatty() else PlainView()
        self._tree = TreeWork(home=home, note=self._view.note)
        self._leave = False
        self._interrupted = False

    def once(self, text: str) -> int:
        """One message, its answer, and the exit code."""
        try:
            return self._say(text)
        finally:
            self._tree.close()

    def converse(self) -> int:
        """Read messages until the end of input, or Ctrl-C at the prompt. Says how to come back."""
        import readline  # noqa: F401 - importing it gives input() line editing and history

        self._view.note(f"Session {self.session.pk} with {self.session.agent_name}. /help lists commands.")
        try:
            while not self._leave:
                try:
                    text = input("> ")
                except (EOFError, KeyboardInterrupt):
                    sys.stdout.write("\n")
                    break
                if text.strip():
                    self._say(text)
        finally:
            self._tree.close()
        workspace = shlex.quote(self.session.workspace.path)
        self._view.note(f"To go on with it: halo chat -w {workspace} -s {self.session.pk}")
        return INTERRUPTED if self._leave else 0

    def _say(self, text: str) -> int:
        if commands.is_command(text):
            return self._command(text)
        return self._send(text)

    def _send(self, text: str) -> int:
        try:
            accepted = queue.accept(session=self.session, text=text, now=clock.now())
            outcome = self._run(self._answer(accepted.message_id, accepted.stamp))
        except SessionError as error:
            self._view.note(str(error))
            return 1
        return INTERRUPTED if outcome is None else self._show(outcome)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """``work``'s result; None when the person left it with Ctrl-C."""
        try:
            return asyncio.run(self._interruptible(work))
        except KeyboardInterrupt:
            self._leave = True
            return None

    def _show(self, outcome: TurnOutcome) -> int:
        if outcome.status == "completed":
            self._view.reply(outcome.text)
            return 0
        if outcome.status == "aborted":
            self._view.note("Interrupted. What was done so far stays in the session.")
            return INTERRUPTED
        return 1

    def _command(self, text: str) -> int:
        place = Place(compact=self._compact)
        self.session.refresh_from_db()  # turns have passed, and others may have changed it
        result = commands.run(text, session=self.session, user=self._user, now=clock.now(), place=place)
        if result.send:
            return self._send(result.send)
        if result.ok and result.text:
            self._view.reply(result.text)
        elif result.text:
            self._view.note(result.text)
        if result.session_id:
            self.session = find_session(result.session_id)
        return 0 if result.ok else 1

    def _compact(self) -> CommandResult:
        """Its lines are shown as they come; there is nothing left to say."""
        outcome = self._run(self._tree.compact(self.session.pk, watch=self._view.watch))
        return CommandResult("", ok=outcome == "compacted")

    async def _interruptible(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Ctrl-C ends the turn while ``work`` goes on, a second one ends ``work``."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we run in one
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt, task)
        self._interrupted = False
        try:
            return await work
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _answer(self, message_id: int, stamp: str) -> TurnOutcome:
        """Work the message here, or wait for the process that holds the session to work it."""
        told = False
        while True:
            try:
                outcome = await self._tree.work(self.session.pk, watch=self._view.watch)
            except SessionHeld as held:
                if not told:
                    self._view.note(f"{held} The message waits there.")
                    told = True
                await asyncio.sleep(LOOK_AGAIN_SEC)
                outcome = None
            if outcome is not None:
                return outcome
            if await asyncio.to_thread(_is_worked, message_id):
                outcome = await asyncio.to_thread(_answer_in_log, self.session, stamp)
                if outcome.error:
                    self._view.note(outcome.error)
                return outcome

    def _on_interrupt(self, task: asyncio.Task[Any]) -> None:
        """Ctrl-C: once ends the turn, twice leaves."""
        if self._interrupted or not self._tree.stop(self.session.pk):
            task.cancel()
        else:
            self._interrupted = True
            self._view.note("Interrupting; Ctrl-C again leaves.")


def _is_worked(message_id: int) -> bool:
    return QueuedMessage.objects.exclude(worked_at=None).filter(pk=message_id).exists()


def _answer_in_log(session: Session, stamp: str) -> TurnOutcome:
    """How another process ended the message's turn: by the first reply behind its row that calls no tool."""
    ui, _ = read_session(log_folder(session), log_leaf(session))
    for row in dropwhile(lambda row: row.get("stamp") != stamp, ui.rows):
        if row["role"] == "system" and row.get("kind") == "error":
            return TurnOutcome("failed", "", str(row.get("text", "")))
        if row["role"] == "assistant" and (row.get("status") != "done" or not _calls_tools(row)):
            return TurnOutcome(_end_of(row), _text_of(row))
    return TurnOutcome("aborted", "")


def _end_of(row: Row) -> Literal["completed", "aborted", "failed"]:
    match row.get("status"):
        case "done":
            return "completed"
        case "interrupted":
            return "aborted"
    return "failed"


def _calls_tools(row: Row) -> bool:
    return any(block.get("type") == "tool_call" for block in row["blocks"])


def _text_of(row: Row) -> str:
    return "\n".join(str(block.get("text", "")) for block in row["blocks"] if block.get("type") == "text")
