"""A process that works a tree dies by SIGKILL between any two steps: no report is lost, none comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from core.paths import HaloHome
from sessions_app import finish_turn, queue, reply_to, reports, session_turn, sub_sessions
from sessions_app.create import create_session
from sessions_app.logs import read_session
from sessions_app.models import QueuedMessage, Session
from sessions_app.opened_session import OpenSession
from sessions_app.places import log_folder, log_leaf
from sessions_app.running_sessions import RunningSessions
from sessions_app.session_tools import NAMES
from sessions_app.tree_work import TreeWork
from tests.sessions.conftest import NOW
from tests.sessions.test_kill import die, dies_at_write, in_a_process_that_dies
from tests.sessions.trees import told, write_agent

pytestmark = pytest.mark.django_db(transaction=True)


async def answers(
    agent: str, messages: list[ModelMessage], _info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    """The same for the same history, so that a turn taken up again goes on as it would have gone."""
    last = messages[-1].parts
    asked = " ".join(str(part.content) for part in last if isinstance(part, UserPromptPart))
    if agent == "writer":
        yield f"Written: {asked[-1]}."
    elif any(isinstance(part, ToolReturnPart) for part in last):
        yield "I wait."
    elif "Report of" in asked:
        yield "Seen."
    else:
        yield {
            place: DeltaToolCall(
                name="start_session",
                json_args=f'{{"agent": "writer", "message": "write {task}"}}',
                tool_call_id=f"call-{task}",
            )
            for place, task in enumerate("AB")
        }


@pytest.fixture
def secretary(session: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Another root, to which ``session`` owes its outcome; the agents, and models that answer by the history."""
    agents = session.workspace.paths.halo / "agents"
    write_agent(agents / "helper", team=["writer"], tools=NAMES, model="{provider: offline, id: helper}")
    write_agent(agents / "writer", model="{provider: offline, id: writer}")
    monkeypatch.setattr(
        "agents.providers.build_model",
        lambda choice: FunctionModel(stream_function=partial(answers, choice.id)),
    )
    other = create_session(
        workspace=session.workspace, agent_id="helper", agent_name="H", access_level="full", now=NOW
    )
    with transaction.atomic():
        debt = {"relay": {"workspace": session.workspace_id, "session": other.pk}}
        reply_to.take_over(session, debt, now=NOW)
        queue.accept(session=session, text="go", sender="agent", source_session=other.pk, now=NOW)
    return other


def work(session: Session, home: HaloHome) -> None:
    tree = TreeWork(home=home, note=lambda _text: None)
    asyncio.run(tree.work(session.pk, watch=lambda _event: None))
    tree.close()


def dies_after(
    module: Any, name: str, *, when: Callable[..., bool] = lambda *_a, **_k: True
) -> Callable[[], None]:
    """Die when ``module.name`` has done its work, before its caller goes on."""

    def patch() -> None:
        whole = getattr(module, name)

        def then_die(*args: Any, **values: Any) -> Any:
            result = whole(*args, **values)
            if when(*args, **values):
                die()
            return result

        setattr(module, name, then_die)

    return patch


def dies_when_telling() -> None:
    """The turn's end is committed, and nobody was woken yet."""

    def wake_told(_sessions: RunningSessions, opened: OpenSession) -> None:
        if opened.to_wake:
            die()

    RunningSessions.wake_told = wake_told  # type: ignore[method-assign]


def is_child(session_id: str, *_args: Any, **_values: Any) -> bool:
    return ">" in session_id


SABOTAGES = [
    *(pytest.param(dies_at_write(number, 0.7), id=f"write-{number}") for number in (2, 4, 6, 8, 10, 12, 14)),
    pytest.param(dies_after(sub_sessions, "start"), id="started-not-told"),
    pytest.param(dies_after(finish_turn, "settle_turn", when=is_child), id="report-in-transaction"),
    pytest.param(dies_after(session_turn, "finish_turn"), id="turn-ended"),
    pytest.param(dies_after(reports, "post"), id="report-queued"),
    pytest.param(dies_when_telling, id="reported-not-woken"),
    pytest.param(
        dies_after(reply_to, "settle", when=lambda row, *_a, **_k: row.is_root), id="reply-in-transaction"
    ),
]


@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_every_outcome_is_told_once(
    session: Session, secretary: Session, tmp_path: Path, sabotage: Callable[[], None]
) -> None:
    home = HaloHome(tmp_path / "home")
    in_a_process_that_dies(lambda: work(session, home), sabotage)
    work(session, home)

    children = list(Session.objects.filter(parent=session))
    assert len(children) <= 2
    for child in children:
        (report,) = told(session, child)
        assert "status completed." in report
        said = str(read_session(log_folder(child), log_leaf(child))[1].messages)
        assert said.count("'Written: ") == 1, "answered once"
        heard = str(read_session(log_folder(session), log_leaf(session))[1].messages)
        assert heard.count(f"Report of sub-session {child.pk}") == 1
    finals = [text for text in told(secretary, session) if "status still running" not in text]
    assert len(finals) == 1 and "status completed." in finals[0]
    assert ("Seen." if children else "I wait.") in finals[0]
    session.refresh_from_db()
    assert session.reply_to is None and session.lease_host is None
    assert not Session.objects.filter(report_due=True).exists()
    assert not QueuedMessage.objects.filter(worked_at=None).exclude(session=secretary).exists()
