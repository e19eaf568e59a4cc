"""Trees that are stopped or interrupted while commands run: nothing goes on, nothing is dropped, calls are closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.history import tool_calls
from agents.repair import is_sound
from core import clock
from core.paths import HaloHome
from sessions_app import lease, queue, requests
from sessions_app.archive_session import archive_session
from sessions_app.logs import read_session
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.session_tools import NAMES
from sessions_app.tree_work import TreeWork
from sessions_app.worker import Worker
from tests.sessions.test_trees import agents, calls, children, delegate, in_rest, rows, says, script
from tests.sessions.test_worker import until
from tests.sessions.trees import told, write_agent

__all__ = ["agents", "script"]

pytestmark = pytest.mark.django_db(transaction=True)

SLEEP = ("shell_exec", {"command": "touch started-$$; sleep 60; touch finished"})
RUNS_LONG = 50.0


@pytest.fixture
def tree(session: Session, agents: Path, script: Callable[..., str]) -> Session:
    """``helper`` has ``runner`` work, which runs a command for a minute, beside two quick calls."""
    model = script(
        "helper",
        calls(delegate("runner", "run it"), when="go"),
        says("I wait.", when="go"),
        says("Heard.", times=0),
    )
    write_agent(agents / "helper", team=["runner"], tools=NAMES, model=model)
    listing = ("file_list", {"path": "."})
    model = script("runner", calls(listing, SLEEP, listing, when="run it"), says("Back again.", times=0))
    write_agent(agents / "runner", tools=["shell_exec", "file_list"], model=model)
    queue.accept(session=session, text="go", now=clock.now())
    return session


def has_started(session: Session) -> bool:
    return any(session.workspace.paths.root.glob("started-*"))


def waits_while_it_runs(session: Session) -> bool:
    """The root's turn is over and the sub-session's command runs."""
    return has_started(session) and "I wait." in rows(session) and not queue.waiting(session.pk)


def results(session: Session) -> list[tuple[str, bool]]:
    """Tool and whether it shows as interrupted, in the order of the calls."""
    ui, raw = read_session(log_folder(session), log_leaf(session))
    assert is_sound(raw.messages)
    made = [call["tool_name"] for message in raw.messages for call in tool_calls(message)]
    blocks = [block for row in ui.rows for block in row.get("blocks", ()) if block["type"] == "tool_call"]
    assert [block["tool"] for block in blocks] == made
    return [(block["tool"], bool(block["result"].get("interrupted"))) for block in blocks]


STOPPED_RESULTS = [("file_list", False), ("shell_exec", True), ("file_list", True)]


def test_stopping_an_idle_root_ends_what_runs_below_and_wakes_nobody(tree: Session, working: Worker) -> None:
    working.wake(tree.pk)
    until(lambda: waits_while_it_runs(tree))
    began = time.monotonic()
    assert working.stop(tree.pk)
    until(in_rest)
    assert time.monotonic() - began < RUNS_LONG, "the command didn't run to its end"
    assert not (tree.workspace.paths.root / "finished").exists()
    (child,) = children(tree)
    assert results(child) == STOPPED_RESULTS
    assert told(tree, child) == [] and "Heard." not in rows(tree)
    child.refresh_from_db()
    assert child.stopped_at is not None

    queue.accept(session=tree, text="and now?", now=clock.now())
    working.wake(tree.pk)
    until(lambda: "Heard." in rows(tree))


def test_a_person_who_stops_a_sub_session_has_its_parent_told(tree: Session, working: Worker) -> None:
    working.wake(tree.pk)
    until(lambda: waits_while_it_runs(tree))
    (child,) = children(tree)
    queue.accept(session=child, text="wait for this", starts_turn=False, now=clock.now())
    assert working.stop(child.pk)
    until(lambda: "Heard." in rows(tree))
    until(in_rest)
    (report,) = told(tree, child)
    assert "status aborted: it was stopped." in report
    assert rows(child)[-1] == "wait for this", "folded in, unanswered"


def test_an_interrupted_sub_session_works_its_queue_next(tree: Session, working: Worker) -> None:
    working.wake(tree.pk)
    until(lambda: waits_while_it_runs(tree))
    (child,) = children(tree)
    queue.accept(session=child, text="rather this", now=clock.now())
    assert working.interrupt(child.pk)
    until(in_rest)
    assert results(child)[:3] == STOPPED_RESULTS
    assert "Back again." in rows(child)
    reports = told(tree, child)
    assert len(reports) == 1 and "Back again." in reports[0] and "status completed" in reports[0]


def test_a_message_that_comes_in_while_calls_run_closes_those_that_had_not_started(
    tree: Session, working: Worker, agents: Path, script: Callable[..., str]
) -> None:
    quick = ("shell_exec", {"command": "touch started-1; sleep 1.5"})
    model = script("soft", calls(quick, SLEEP, when="run it"), says("Folded in.", times=0))
    write_agent(agents / "runner", tools=["shell_exec"], model=model)
    working.wake(tree.pk)
    until(lambda: has_started(tree))
    (child,) = children(tree)
    queue.accept(session=child, text="a further thing", now=clock.now())
    working.wake(child.pk)
    until(in_rest)
    assert results(child) == [("shell_exec", False), ("shell_exec", True)]
    assert len(told(tree, child)) == 1


def test_a_parent_stops_what_it_started_and_hears_nothing_of_it(
    session: Session, agents: Path, script: Callable[..., str], working: Worker
) -> None:
    write_agent(
        agents / "helper",
        team=["runner"],
        tools=NAMES,
        model=script("first", calls(delegate("runner", "run it"), when="go"), says("I wait.", times=0)),
    )
    write_agent(
        agents / "runner", tools=["shell_exec"], model=script("runner", calls(SLEEP), says("Over.", times=0))
    )
    queue.accept(session=session, text="go", now=clock.now())
    working.wake(session.pk)
    until(lambda: waits_while_it_runs(session))
    (child,) = children(session)
    write_agent(
        agents / "helper",
        tools=NAMES,
        model=script(
            "second",
            calls(("stop_session", {"session_id": child.pk})),
            calls(("session_list", {})),
            says("It is stopped.", times=0),
        ),
    )
    queue.accept(session=session, text="stop it", now=clock.now())
    working.wake(session.pk)
    until(lambda: "It is stopped." in rows(session))
    until(in_rest)
    assert told(session, child) == []
    assert any(f"{child.pk} (runner), stopped" in text for text in rows(session))


def test_a_session_archived_by_another_process_is_aborted_where_it_runs(
    tree: Session, working: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    working.wake(tree.pk)
    until(lambda: waits_while_it_runs(tree))
    (child,) = children(tree)
    here = lease.live_holder(tree.pk)
    assert here is not None
    monkeypatch.setattr(requests.ProcessIdentity, "current", lambda: replace(here, pid=here.pid + 1))
    count, _ = archive_session(tree.pk, now=clock.now())
    monkeypatch.undo()
    assert count == 2
    until(in_rest)
    assert results(child) == STOPPED_RESULTS
    assert told(tree, child) == []


def test_ctrl_c_at_the_terminal_ends_the_whole_tree(tree: Session, tmp_path: Path) -> None:
    work = TreeWork(home=HaloHome(tmp_path / "home"), note=lambda _text: None)

    async def stopped() -> Any:
        task = asyncio.create_task(work.work(tree.pk, watch=lambda _event: None))
        await asyncio.to_thread(until, lambda: waits_while_it_runs(tree))
        assert work.stop(tree.pk)
        return await task

    began = time.monotonic()
    outcome = asyncio.run(stopped())
    work.close()
    assert time.monotonic() - began < RUNS_LONG
    assert outcome.text == "I wait."
    assert in_rest()
    (child,) = children(tree)
    assert results(child) == STOPPED_RESULTS
    assert told(tree, child) == []
