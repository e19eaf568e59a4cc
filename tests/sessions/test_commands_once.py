"""A command that is sent twice at once, as a form that was clicked twice is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import User

from core.db.callers import Caller
from sessions_app import commands
from sessions_app.commands import CommandContext, CommandResult
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from sessions_app.send_message import send_message
from tests.site.chat_world import NOW, make_session


class Slow:
    """The command ``/slow``: begun, it waits until it may end. ``fails``: how often it is refused first."""

    def __init__(self, *, fails: int = 0) -> None:
        self.begun, self.may_end = Event(), Event()
        self.runs, self._fails = 0, fails

    def __call__(self, context: CommandContext) -> CommandResult:
        self.runs += 1
        self.begun.set()
        assert self.may_end.wait(20)
        if self.runs <= self._fails:
            raise SessionRefused("Not now.", "busy")
        return CommandResult(f"Run {self.runs}.")


@pytest.fixture
def session(db: None, tmp_path: Path, halo_home: Path) -> Session:
    return make_session(tmp_path / "workspace", access_level="workspace")


def caller() -> Caller:
    return Caller(User(username="root", is_superuser=True))  # asks no database, so any thread may


def register(monkeypatch: pytest.MonkeyPatch, slow: Slow) -> None:
    monkeypatch.setattr(commands, "_registry", dict(commands._registry))
    commands.register("slow", slow)


def say(session: Session, client_id: str) -> str:
    sent = send_message(session=session, text="/slow", client_id=client_id, caller=caller(), now=NOW)
    assert sent.answer is not None
    return sent.answer.text


def twice(session: Session, slow: Slow, client_id: str) -> list[Any]:
    """Both answers, or what they raised; the second is sent while the first one runs."""
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(say, session, client_id)
        assert slow.begun.wait(20)
        second = pool.submit(say, session, client_id)
        assert not second.done()
        slow.may_end.set()
        return [each.exception() or each.result() for each in (first, second)]


def test_it_runs_once_and_both_get_its_answer(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    register(monkeypatch, slow)

    assert twice(session, slow, "once") == ["Run 1.", "Run 1."]
    assert slow.runs == 1
    assert say(session, "another") == "Run 2."


def test_a_refusal_is_told_and_not_kept(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(fails=1)
    register(monkeypatch, slow)
    slow.may_end.set()
    with pytest.raises(SessionRefused, match="Not now"):
        say(session, "refused")

    assert say(session, "refused") == "Run 2."


def test_whoever_waits_is_told_the_same_refusal(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(fails=1)
    register(monkeypatch, slow)
    first, second = twice(session, slow, "both")

    assert str(first) == "Not now."
    assert str(second) in ("Not now.", "Run 2.")  # asked again just after the end, it runs again
