"""How many sessions a web process works at once: the others wait in order, and nobody for somebody behind them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage

from agents.events import ToolCall
from core import clock
from core.db.models import Event
from core.paths import HaloHome
from sessions_app import queue
from sessions_app.create import create_session
from sessions_app.models import RunningSession, Session
from sessions_app.session_tools import NAMES
from sessions_app.waiting_line import WaitingLine
from sessions_app.worker import Worker
from tests.sessions.conftest import NOW
from tests.sessions.models_in_tests import Script
from tests.sessions.test_trees import agents, calls, delegate, rows, says, script
from tests.sessions.test_trees import in_rest as all_in_rest
from tests.sessions.test_worker import ENDLESS, PATIENCE_SEC, in_another_thread, in_rest, said, say, until
from tests.sessions.trees import write_agent

__all__ = ["agents", "script"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    """One session at a time."""
    home = HaloHome(tmp_path / "home")
    home.settings_file.parent.mkdir(parents=True)
    home.settings_file.write_text("general:\n  session:\n    max_concurrent: 1\n")
    return home


def another(session: Session) -> Session:
    return create_session(
        workspace=session.workspace, agent_id="helper", agent_name="Helper", access_level="full", now=NOW
    )


class TestTheLine:
    def test_whoever_came_first_begins_first_and_a_tree_stays_together(self) -> None:
        line = WaitingLine(2)
        for name in ("a", "b"):
            assert line.has_room_for(name)
            line.began(name)
        for name in ("c", "d", "c>1", "c"):
            assert not line.has_room_for(name)
            line.wait(name)
        assert line.has_room_for("a>1"), "its tree is at work"
        line.began("a>1")
        line.ended("a")
        assert line.admitted() == [], "two are at work still"
        line.ended("b")
        assert line.admitted() == ["c", "c>1"]
        for name in ("c", "c>1"):
            line.began(name)
        line.ended("a>1")
        assert line.admitted() == []
        line.ended("c>1")
        assert line.admitted() == ["d"]
        assert line.admitted() == []

    def test_nobody_overtakes_when_the_bound_is_raised(self) -> None:
        line = WaitingLine(1)
        line.began("a")
        line.wait("b")
        line.bound = 3
        assert not line.has_room_for("c")
        assert line.admitted() == ["b"]

    def test_what_began_beside_the_line_stands_in_it_no_longer(self) -> None:
        line = WaitingLine(1)
        line.began("a")
        line.wait("b")
        line.began("b")  # stopped by a person
        line.ended("b")
        line.ended("a")
        assert line.admitted() == []
        assert line.has_room_for("c")


def test_after_a_start_all_that_waits_is_worked_in_the_order_in_which_it_came(
    session: Session, agent: Path, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    def answer(messages: Sequence[ModelMessage]) -> str:
        text = str(messages[-1].parts[-1].content).rpartition("] ")[2]  # type: ignore[union-attr]
        seen.append((text, in_another_thread(RunningSession.objects.count)))
        return "Yes."

    asked = [another(session), session, another(session), another(session)]
    asked.sort(key=lambda row: row.pk, reverse=True)  # other than by their ids
    Script(*[answer] * len(asked)).install(monkeypatch)
    for number, row in enumerate(asked):
        say(row, f"question {number}")
    working = Worker(home=home, look_sec=1000)
    working.start()
    until(lambda: all(in_rest(row) for row in asked))
    assert working.close(wait_sec=PATIENCE_SEC)

    assert seen == [(f"question {number}", "1") for number in range(len(asked))]


def test_a_tree_at_work_ends_its_work_before_others_begin(
    session: Session, agents: Path, script: Callable[..., str], home: HaloHome
) -> None:
    model = script(
        "helper",
        calls(delegate("writer", "write it"), when="go"),
        says("I wait.", when="go"),
        says("Hello.", when="hello"),
        says("It is written.", when="Report of sub-session", times=0),
    )
    write_agent(agents / "helper", team=["writer"], tools=NAMES, model=model)
    write_agent(agents / "writer", model=script("writer", says("Written.", times=0)))
    other = another(session)
    queue.accept(session=session, text="go", now=clock.now())
    queue.accept(session=other, text="hello", now=clock.now())
    working = Worker(home=home, look_sec=1000)
    working.start()
    until(all_in_rest)
    assert working.close(wait_sec=PATIENCE_SEC)

    assert rows(session)[-1] == "It is written." and rows(other)[-1] == "Hello."
    ended = [row.object_id for row in Event.objects.all() if row.payload["change"] == "turn_ended"]
    assert ended[-1] == other.pk and ended.count(other.pk) == 1
    assert {session.pk} < set(ended[:-1]), "the sub-session among them"


def test_one_that_waits_in_line_is_stopped_at_once(
    session: Session, agent: Path, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    (agent / "agent.yaml").write_text("name: Helper\ntools: [shell_exec]\n")
    script = Script(ENDLESS, "Never.").install(monkeypatch)
    waits = another(session)
    working = Worker(home=home, look_sec=1000)
    working.start()
    until(lambda: working.looks > 0)
    running = threading.Event()
    working.watch(session.pk, lambda event: running.set() if isinstance(event, ToolCall) else None)
    say(session, "first")
    working.wake(session.pk)
    assert running.wait(PATIENCE_SEC)
    say(waits, "second")
    working.wake(waits.pk)
    assert working.stop(waits.pk)
    until(lambda: in_rest(waits))
    assert said(waits) == ["second"]
    assert working.is_at_work(session.pk), "the first one's turn goes on"
    assert working.stop(session.pk)
    until(lambda: in_rest(session))
    assert working.close(wait_sec=PATIENCE_SEC)
    assert len(script.seen) == 1
