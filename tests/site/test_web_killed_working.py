"""Web processes that die, hang, or are ended while they work sessions: nothing lost, nothing answered twice."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core import clock
from core.processes import host_name
from sessions_app import lease, queue
from sessions_app.create import create_session
from sessions_app.logs import read_session
from sessions_app.models import QueuedMessage, RunningSession, Session
from sessions_app.places import log_folder, log_leaf
from tests.site.api_world import person, token_for
from tests.site.web_world import STAGES, Mind, in_rest, until, web, write_agent
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]


class World:
    """An installation with a workspace, whose agent is ``mind``."""

    def __init__(self, tmp_path: Path, mind: Mind) -> None:
        self.home = tmp_path / "home"
        self.mind = mind
        root = tmp_path / "ws"
        root.mkdir()
        write_agent(root, mind)
        self.workspace = Workspace.objects.create(path=str(root), host=host_name(), created_at=clock.now())
        self.token = token_for(person("operator"))

    def session(self) -> Session:
        return create_session(
            workspace=self.workspace,
            agent_id="helper",
            agent_name="Helper",
            access_level="full",
            now=clock.now(),
        )

    def web(self) -> Any:
        return web(self.home, self.token)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with Mind(tmp_path) as mind:
        yield World(tmp_path, mind)


def rows_of(session: Session) -> list[dict[str, Any]]:
    ui, raw = read_session(log_folder(session), log_leaf(session))
    assert ui.open_rows == []
    assert len({row["id"] for row in ui.rows}) == len(ui.rows)
    assert not ui.damages and not raw.damages and not raw.gaps
    return list(ui.rows)


def answers(session: Session) -> Counter[str]:
    """How often the model's finished replies answer each question."""
    found: Counter[str] = Counter()
    for row in rows_of(session):
        if row["role"] == "assistant" and row["status"] == "done":
            text = " ".join(block.get("text", "") for block in row["blocks"])
            found.update(re.findall(r"Done: (q\d+)", text))
    return found


def nudges(session: Session) -> list[str]:
    rows = QueuedMessage.objects.filter(session=session, sender="system").order_by("pk")
    return list(rows.values_list("text", flat=True))


def test_killed_at_every_stage_of_a_turn_everything_is_answered_once(world: World) -> None:
    session = world.session()
    stamps: dict[str, str] = {}
    with ExitStack() as stack:
        running = stack.enter_context(world.web())
        for place, stage in enumerate(STAGES):
            gate = world.mind.hold(stage)
            for question in (f"q{2 * place}", f"q{2 * place + 1}"):  # the second one waits, or is folded in
                stamps[question] = running.say(session, question)
            until(gate.reached.is_set)
            running.kill()
            gate.open.set()
            running = stack.enter_context(world.web())
            until(lambda: in_rest(session))
        stamps["q100"] = running.say(session, "q100")
        running.kill()  # at once, when nothing has begun, or hardly
        running = stack.enter_context(world.web())
        until(lambda: in_rest(session))
        sent_again = {question: running.say(session, question) for question in stamps}
        until(lambda: in_rest(session))

    assert sent_again == stamps
    assert answers(session) == Counter(dict.fromkeys(stamps, 1))
    asked = [row["text"] for row in rows_of(session) if row["role"] == "user"]
    assert [text for text in asked if text.startswith("answer")] == [f"answer {name}" for name in stamps]
    told = nudges(session)
    assert 3 <= len(told) <= len(STAGES) + 1, "once for each turn that was cut off"
    assert all("your own turn" in text for text in told)
    assert not RunningSession.objects.exists()


def test_two_web_processes_never_work_one_session_at_once(world: World) -> None:
    sessions = [world.session() for _ in range(3)]
    questions = [f"q{number}" for number in range(1, 5)]
    with world.web() as one, world.web() as other:
        for place, question in enumerate(questions):
            for session in sessions:
                (one, other)[place % 2].say(session, question)
        until(lambda: all(in_rest(session) for session in sessions))

    for session in sessions:
        assert answers(session) == Counter(dict.fromkeys(questions, 1))
        assert not [row for row in rows_of(session) if row.get("kind") == "late"]
    assert world.mind.at_once == 1
    assert not RunningSession.objects.exists()


def test_a_stop_sent_to_one_process_ends_the_turn_in_the_other(world: World) -> None:
    world.mind.command = "sleep 300"
    session = world.session()
    with world.web() as one, world.web() as other:
        one.say(session, "q1")
        until((world.mind.folder / "marker").exists)
        holder = lease.live_holder(session.pk)
        idle = other if holder and holder.pid == one.process.pid else one
        idle.say(session, "q2")
        status, _ = idle.call("POST", f"/sessions/{session.pk}/stop")
        assert status == 202
        until(lambda: in_rest(session), within_sec=15)
        assert idle.call("POST", f"/sessions/{session.pk}/stop")[0] == 409

    assert [row["text"] for row in rows_of(session) if row["role"] == "user"] == ["answer q1", "answer q2"]
    assert answers(session) == Counter()
    assert world.mind.count == 1, "the model was asked for nothing more"


def test_a_process_that_lives_takes_over_what_a_killed_one_left(world: World) -> None:
    session = world.session()
    with world.web() as one, world.web():
        gate = world.mind.hold("call")
        one.say(session, "q1")
        until(gate.reached.is_set)
        assert lease.live_holder(session.pk) is not None
        one.kill()
        gate.open.set()
        until(lambda: answers_q1(session))
        until(lambda: in_rest(session))

    assert answers(session) == Counter(q1=1)


def test_a_process_that_hung_finds_its_session_taken_and_what_it_still_says_is_a_note(world: World) -> None:
    session = world.session()
    with world.web() as one:
        gate = world.mind.hold("answer")
        one.say(session, "q1")
        until(lambda: "I begin." in ui_text(session))
        one.process.send_signal(signal.SIGSTOP)
        long_ago = clock.now() - timedelta(seconds=1)
        Session.objects.filter(pk=session.pk).update(lease_expires_at=long_ago)
        gate.open.set()
        with world.web():
            until(lambda: answers_q1(session))
            one.process.send_signal(signal.SIGCONT)
            until(lambda: '"late"' in ui_text(session))
            until(lambda: in_rest(session))

    assert answers(session) == Counter(q1=1)
    [late] = [row for row in rows_of(session) if row.get("kind") == "late"]
    assert "I begin." in str(late["kept"])
    assert not RunningSession.objects.exists()


@pytest.mark.parametrize("stage", ["command", "answer"])
def test_a_process_that_is_told_to_end_lands_what_runs_within_ten_seconds(world: World, stage: str) -> None:
    world.mind.command = "trap '' TERM; while :; do sleep 1; done" if stage == "command" else "true"
    session = world.session()
    with world.web() as running:
        gate = world.mind.hold(stage)
        running.say(session, "q1")
        until(gate.reached.is_set)
        if stage == "answer":
            until(lambda: "I begin." in ui_text(session))
        count = world.mind.count
        started = time.monotonic()
        running.process.terminate()
        running.process.wait(timeout=30)
        took = time.monotonic() - started
        gate.open.set()
    assert took < 10
    assert world.mind.count == count, "no new model call"
    assert [row.text for row in queue.waiting(session.pk)] == ["answer q1"]
    session.refresh_from_db()
    assert (session.lease_host, RunningSession.objects.count()) == (None, 1)
    rows = rows_of(session)
    assert "shut down during this turn" in rows[-1]["text"]
    if stage == "answer":
        assert "I begin." in session.output and "shut down" in session.output
        assert rows[-2]["status"] == "interrupted"
    else:
        [call] = [row for row in rows if row["role"] == "assistant"]
        assert call["blocks"][-1]["result"]["interrupted"] is True

    world.mind.command = "true"
    with world.web():
        until(lambda: in_rest(session))
    assert answers(session) == Counter(q1=1)
    assert len(nudges(session)) == 1
    assert not RunningSession.objects.exists()


def answers_q1(session: Session) -> bool:
    return "Done: q1" in ui_text(session)


def ui_text(session: Session) -> str:
    path = log_folder(session) / f"{log_leaf(session)}.ui.jsonl"
    return path.read_text() if path.exists() else ""
