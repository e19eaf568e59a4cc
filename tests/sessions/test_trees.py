"""Sub-sessions at work: real turns of the offline engine's scripts, in one process, under the root's lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.turn import TurnOutcome
from core import clock
from core.paths import HaloHome
from sessions_app import queue
from sessions_app.logs import read_session
from sessions_app.models import QueuedMessage, Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.session_tools import NAMES
from sessions_app.tree_work import TreeWork
from tests.sessions.trees import write_agent

pytestmark = pytest.mark.django_db(transaction=True)

Step = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    return HaloHome(tmp_path / "home")


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """``script(name, *steps)``: the model of an agent, driven by steps of the offline engine's script."""

    def write(name: str, *steps: Step) -> str:
        path = tmp_path / f"{name}.script"
        path.write_text(yaml.safe_dump(list(steps)))
        return f"{{provider: offline, id: 'script:{path}'}}"

    return write


@pytest.fixture
def agents(session: Session) -> Path:
    return session.workspace.paths.halo / "agents"


@pytest.fixture
def tree(home: HaloHome) -> Iterator[TreeWork]:
    notes: list[str] = []
    work = TreeWork(home=home, note=notes.append)
    yield work
    work.close()


def calls(*called: tuple[str, Step], when: str = "", **more: Any) -> Step:
    return {"when": when, "calls": [{"tool": name, "arguments": values} for name, values in called], **more}


def says(text: str, *, when: str = "", **more: Any) -> Step:
    return {"when": when, "text": text, **more}


def delegate(agent: str, message: str, **more: Any) -> tuple[str, Step]:
    return ("start_session", {"agent": agent, "message": message, **more})


def work(tree: TreeWork, session: Session, text: str = "go") -> TurnOutcome | None:
    queue.accept(session=session, text=text, now=clock.now())
    return asyncio.run(tree.work(session.pk, watch=lambda _event: None))


def children(session: Session) -> list[Session]:
    return list(Session.objects.filter(parent=session).order_by("created_at", "pk"))


def rows(session: Session) -> list[str]:
    """What a person sees: texts of all rows, tool calls by name and result."""
    shown = []
    for row in read_session(log_folder(session), log_leaf(session))[0].rows:
        if "text" in row:
            shown.append(row["text"])
            continue
        for block in row["blocks"]:
            if block["type"] == "tool_call":
                shown.append(f"{block['tool']}: {block.get('result', {}).get('text')}")
            else:
                shown.append(block["text"])
    return shown


def in_rest() -> bool:
    """Nothing owes, waits or is held."""
    return not (
        Session.objects.filter(report_due=True).exists()
        or QueuedMessage.objects.filter(worked_at=None).exists()
        or Session.objects.exclude(lease_host=None).exists()
    )


def test_a_tree_works_until_everybody_has_reported(
    session: Session, agents: Path, script: Callable[..., str], tree: TreeWork
) -> None:
    write_agent(
        agents / "helper",
        team=["writer"],
        tools=NAMES,
        model=script(
            "helper",
            calls(delegate("writer", "write A"), delegate("writer", "write B", context="in red"), when="go"),
            says("I wait.", when="go"),
            says("One is done.", when="Report of sub-session", times=0),
        ),
    )
    write_agent(
        agents / "writer",
        model=script(
            "writer",
            says("A is written.", when="write A"),
            says("B is written.", when="write B", delay=0.3),
        ),
    )
    outcome = work(tree, session)
    assert outcome is not None and (outcome.status, outcome.text) == ("completed", "One is done.")
    assert in_rest()
    first, second = children(session)
    assert rows(first) == ["write A", "A is written."]
    assert rows(second) == ["write B\n\nContext:\nin red", "B is written."]
    said = "\n".join(rows(session))
    assert said.count("A is written.") == said.count("B is written.") == 1
    assert f"Still running: {second.pk} (writer)." in said
    assert "None of your other sub-sessions is running." in said
    messages = read_session(log_folder(session), log_leaf(session))[1].messages
    assert f"(from: session {first.pk}) Report of sub-session {first.pk}" in str(messages)


def test_a_grandchild_reports_to_its_parent_which_reports_to_the_root(
    session: Session, agents: Path, script: Callable[..., str], tree: TreeWork
) -> None:
    write_agent(
        agents / "helper",
        team=["lead"],
        tools=NAMES,
        model=script(
            "helper",
            calls(delegate("lead", "lead it"), when="go"),
            says("Waiting for the lead.", when="go"),
            says("All done.", when="The lead is done."),
        ),
    )
    write_agent(
        agents / "lead",
        team=["writer"],
        tools=NAMES,
        model=script(
            "lead",
            calls(delegate("writer", "write"), when="lead it"),
            says("Delegated.", when="lead it"),
            says("The lead is done.", when="Written."),
        ),
    )
    write_agent(agents / "writer", model=script("writer", says("Written.", delay=0.2)))
    outcome = work(tree, session)
    assert outcome is not None and outcome.text == "All done."
    assert in_rest()
    (lead,) = children(session)
    (writer,) = children(lead)
    assert writer.pk.count(">") == 2
    said = rows(session)
    assert sum("Report of sub-session" in text for text in said) == 1
    assert "Delegated." not in "".join(said)


def test_whom_an_agent_may_ask_is_its_team(
    session: Session, agents: Path, script: Callable[..., str], tree: TreeWork
) -> None:
    write_agent(
        agents / "helper",
        tools=NAMES,
        model=script("helper", calls(delegate("helper", "again"), ("session_list", {})), says("Alone.")),
    )
    work(tree, session)
    assert children(session) == []
    assert "start_session: You can't delegate to 'helper'. Your team: nobody." in rows(session)
    assert "session_list: You have started no sessions." in rows(session)


def test_the_verbs_as_a_model_uses_them(
    session: Session, agents: Path, script: Callable[..., str], tree: TreeWork
) -> None:
    """Stop, list, continue, query, read, archive: the id of the sub-session comes from its report."""
    write_agent(
        agents / "helper",
        team=["writer"],
        tools=NAMES,
        model=script("helper", calls(delegate("writer", "write"), when="go"), says("ok", times=0)),
    )
    write_agent(
        agents / "writer",
        model=script(
            "writer", says("W" * 9000, when="write"), says("Again.", when="Do not start over"), says("Yes.")
        ),
    )
    work(tree, session)
    (child,) = children(session)
    assert "1,000 more" not in "".join(rows(session)) and "808 more characters" in "".join(rows(session))

    def ask(name: str, **values: Any) -> str:
        before = len(rows(session))
        write_agent(
            agents / "helper",
            team=["writer"],
            tools=NAMES,
            model=script(f"helper-{before}", calls((name, values), when="now"), says("ok", times=0)),
        )
        work(tree, session, "now")
        return next(text for text in rows(session)[before:] if text.startswith(f"{name}: "))

    assert f"- {child.pk} (writer), idle: write" in ask("session_list")
    assert "characters 1 to 7,500 of 9,000; go on with offset=7500]" in ask(
        "get_session_output", session_id=child.pk
    )
    assert "characters 7,501 to 9,000 of 9,000]" in ask(
        "get_session_output", session_id=child.pk, offset=7500
    )
    assert "offset must lie between" in ask("get_session_output", session_id=child.pk, offset=9000)
    assert "wasn't in the middle" in ask("interrupt_session", session_id=child.pk)
    assert "Stopped" in ask("stop_session", session_id=child.pk)
    assert "stopped: write" in ask("session_list")
    assert "goes on" in ask("continue_task", session_id=child.pk)
    assert "Again." in "".join(rows(session))
    assert "Sent to" in ask("query_session", session_id=child.pk, message="done?")
    assert "Yes." in "".join(rows(session))
    assert "not found" in ask("query_session", session_id=session.pk, message="hello").replace(
        "There is no sub-session", "not found"
    )
    assert "1 session in all" in ask("archive_session", session_id=child.pk)
    assert "is archived" in ask("query_session", session_id=child.pk, message="and now?")
    assert in_rest()
