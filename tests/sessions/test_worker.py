"""The worker of a web process: woken, or finding by itself what waits; stopped and interrupted from anywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from agents.events import AgentEvent, Complete, ToolCall
from core import clock
from core.db.models import Event, process_values
from core.paths import HaloHome
from core.processes import ProcessIdentity, host_name
from sessions_app import lease, queue, requests, worker
from sessions_app.errors import NotInServer
from sessions_app.logs import read_session
from sessions_app.models import RunningSession, Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.stop_tree import mark_stopped
from sessions_app.worker import Worker
from tests.sessions.models_in_tests import Script, call_tool
from tests.sessions.working import PATIENCE_SEC

pytestmark = pytest.mark.django_db(transaction=True)

ENDLESS = call_tool("shell_exec", '{"command": "sleep 600"}')


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    return HaloHome(tmp_path / "home")


def say(session: Session, text: str) -> int:
    return queue.accept(session=session, text=text, now=clock.now()).message_id


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SEC
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_rest(session: Session) -> bool:
    return not queue.waiting(session.pk) and lease.live_holder(session.pk) is None


def said(session: Session) -> list[str]:
    ui, _ = read_session(log_folder(session), log_leaf(session))
    return [
        row["text"] if "text" in row else "+".join(b.get("text", b["type"]) for b in row["blocks"])
        for row in ui.rows
    ]


def test_outside_a_server_there_is_none() -> None:
    with pytest.raises(NotInServer, match="only inside the server"):
        worker.worker()


def test_a_woken_session_is_worked_and_the_ledger_is_empty_in_rest(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger: list[int] = []

    def answer(_messages: object) -> str:
        ledger.append(RunningSession.objects.filter(session=session).count())
        return "Hello."

    Script(lambda messages: in_another_thread(lambda: answer(messages))).install(monkeypatch)
    assert worker.worker() is working
    say(session, "hi")
    working.wake(session.pk)
    until(lambda: in_rest(session))
    assert said(session) == ["hi", "Hello."]
    assert ledger == [1]
    assert not RunningSession.objects.exists()


def test_what_waits_is_found_without_being_woken(
    session: Session, agent: Path, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script("Found.", "Found again.").install(monkeypatch)
    say(session, "before the start")
    working = Worker(home=home, look_sec=0.05)
    working.start()
    until(lambda: in_rest(session))
    say(session, "after it")
    until(lambda: in_rest(session))
    assert working.close(wait_sec=PATIENCE_SEC)
    assert said(session) == ["before the start", "Found.", "after it", "Found again."]


def test_what_a_dead_process_left_of_an_archived_session_is_taken_away(
    session: Session, agent: Path, home: HaloHome
) -> None:
    dead = ProcessIdentity(host_name(), "an earlier boot", 4711, 1)
    RunningSession.objects.create(session=session, epoch=1, started_at=clock.now(), **process_values(dead))
    Session.objects.filter(pk=session.pk).update(archived_at=clock.now())
    working = Worker(home=home, look_sec=1000)
    working.start()
    until(lambda: not RunningSession.objects.exists())
    assert working.close(wait_sec=PATIENCE_SEC)
    assert queue.waiting(session.pk) == []


def test_a_workspace_of_another_host_is_left_to_it(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script("Not here.").install(monkeypatch)
    session.workspace.host = "elsewhere"
    session.workspace.save()
    say(session, "hi")
    working.wake(session.pk)
    assert working.close(wait_sec=PATIENCE_SEC)
    assert script.seen == []
    assert [row.text for row in queue.waiting(session.pk)] == ["hi"]


def test_a_watcher_sees_the_events_of_its_session_until_it_goes(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script("One.", "Two.").install(monkeypatch)
    seen: list[AgentEvent] = []
    unwatch = working.watch(session.pk, seen.append)
    say(session, "a")
    working.wake(session.pk)
    until(lambda: in_rest(session))
    assert isinstance(seen[-1], Complete)
    count = len(seen)
    unwatch()
    say(session, "b")
    working.wake(session.pk)
    until(lambda: in_rest(session))
    assert len(seen) == count


def test_a_failing_watcher_ends_no_turn(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_event: AgentEvent) -> None:
        raise ValueError("the view is broken")

    Script("One.").install(monkeypatch)
    working.watch(session.pk, fails)
    say(session, "a")
    working.wake(session.pk)
    until(lambda: in_rest(session))
    assert said(session) == ["a", "One."]


def test_a_message_to_a_busy_session_is_folded_into_one_follow_up_turn(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(call_tool("glob", '{"pattern": "*"}'), "To all.").install(monkeypatch)

    def watch(event: AgentEvent) -> None:
        if isinstance(event, ToolCall):
            for text in ("second", "third"):
                in_another_thread(partial(say, session, text))
                working.wake(session.pk)

    working.watch(session.pk, watch)
    say(session, "first")
    working.wake(session.pk)
    until(lambda: in_rest(session))
    until(lambda: not working.is_at_work(session.pk))
    assert [text for text in said(session) if text in ("first", "second", "third")] == [
        "first",
        "second",
        "third",
    ]
    assert said(session)[-1] == "To all."
    assert len(script.seen) == 2


def cut_into(session: Session, agent: Path, working: Worker, end: Callable[[str], object]) -> None:
    """A command of the first message's turn runs and a second message waits when ``end`` is called."""
    (agent / "agent.yaml").write_text("name: Helper\ntools: [shell_exec]\n")

    def watch(event: AgentEvent) -> None:
        if isinstance(event, ToolCall):
            in_another_thread(lambda: say(session, "second"))
            threading.Timer(0.2, lambda: in_another_thread(lambda: end(session.pk))).start()

    working.watch(session.pk, watch)
    say(session, "first")
    working.wake(session.pk)
    until(lambda: in_rest(session))


def test_an_interrupt_aborts_the_turn_and_works_what_waits(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that runs is ended, its call shows as interrupted, and the message behind it is answered."""
    script = Script(ENDLESS, "Now to the second.").install(monkeypatch)
    cut_into(session, agent, working, working.interrupt)
    assert said(session)[-1] == "Now to the second."
    assert len(script.seen) == 2


def test_a_stop_folds_what_waits_unanswered(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(ENDLESS, "Never.").install(monkeypatch)
    cut_into(session, agent, working, working.stop)
    assert said(session)[-1] == "second"
    assert len(script.seen) == 1
    assert working.stop(session.pk) is False


def test_a_stop_of_a_session_that_only_waits_folds_it(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script("Never.").install(monkeypatch)
    say(session, "waits")
    assert working.stop(session.pk) is True
    until(lambda: in_rest(session))
    assert said(session) == ["waits"]
    assert script.seen == []


def test_a_stop_where_nothing_runs_waits_or_is_owed_changes_nothing(
    session: Session, working: Worker
) -> None:
    before = Session.objects.values().get(), Event.objects.count()
    assert working.stop(session.pk) is False
    assert (Session.objects.values().get(), Event.objects.count()) == before


def test_a_stop_is_told_once(session: Session) -> None:
    say(session, "waits")
    for _ in range(2):
        mark_stopped(session.pk, now=clock.now())
    assert [row.payload["change"] for row in Event.objects.all()] == ["created", "stopped"]


@pytest.mark.parametrize("what", ["stop", "interrupt"])
def test_what_is_asked_of_another_process_is_done_there_within_a_second_or_two(
    session: Session, agent: Path, working: Worker, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The other process is played by a wish whose sender isn't the holder."""
    (agent / "agent.yaml").write_text("name: Helper\ntools: [shell_exec]\n")
    Script(ENDLESS, "Never.").install(monkeypatch)
    running = threading.Event()
    working.watch(session.pk, lambda event: running.set() if isinstance(event, ToolCall) else None)
    say(session, "first")
    working.wake(session.pk)
    assert running.wait(PATIENCE_SEC)
    with monkeypatch.context() as patch:
        patch.setattr(ProcessIdentity, "current", classmethod(lambda cls: _another()))
        assert requests.ask(session.pk, what)
    until(lambda: in_rest(session))
    session.refresh_from_db()
    assert session.asked == ""
    assert said(session)[-1] != "Never."


def test_what_was_asked_of_an_earlier_holder_is_no_business_of_a_later_one(session: Session) -> None:
    first = lease.acquire(session.pk)
    Session.objects.filter(pk=session.pk).update(asked="stop", asked_epoch=first.epoch)
    lease.release(first)
    second = lease.acquire(session.pk)
    assert requests.take_asked(second) == {}
    session.refresh_from_db()
    assert session.asked == ""


def test_a_stop_is_not_weakened_to_an_interrupt(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    held = lease.acquire(session.pk)
    with monkeypatch.context() as patch:
        patch.setattr(ProcessIdentity, "current", classmethod(lambda cls: _another()))
        assert requests.ask(session.pk, "stop")
        assert requests.ask(session.pk, "interrupt")
    assert requests.take_asked(held) == {session.pk: "stop"}
    assert requests.take_asked(held) == {}


def test_a_session_whose_lease_ran_out_is_taken_up(
    session: Session, agent: Path, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder lives, but hasn't renewed: a process that hangs, or another host that is gone."""
    Script("Taken over.").install(monkeypatch)
    hung = lease.acquire(session.pk)
    say(session, "hi")
    working = Worker(home=home, look_sec=0.05)
    working.start()
    until(lambda: working.looks >= 3)
    assert said(session) == []
    Session.objects.filter(pk=session.pk).update(lease_expires_at=clock.now() - timedelta(seconds=1))
    until(lambda: in_rest(session))
    assert working.close(wait_sec=PATIENCE_SEC)
    assert said(session) == ["hi", "Taken over."]
    assert lease.renew(hung) is False


def _another() -> ProcessIdentity:
    return ProcessIdentity(host_name(), "another boot", 1, 1)


def in_another_thread(work: Callable[[], object]) -> str:
    """The database asked beside the loop that would refuse it; its connection is closed."""
    from django.db import connections

    result: list[object] = []

    def whole() -> None:
        try:
            result.append(work())
        finally:
            connections.close_all()

    thread = threading.Thread(target=whole)
    thread.start()
    thread.join()
    return str(result[0])
