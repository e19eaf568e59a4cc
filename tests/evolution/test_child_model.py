"""Which model is asked: an internal agent's own, else the judged agent's; a draft's, only where the base has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.turn import View
from evolution.child import answering_agent
from evolution.phases.context import ChildSpec
from workspaces.agent_yaml import AgentConfig
from workspaces.compose import compose
from workspaces.overrides import Surface
from workspaces.publish_lock import SurfaceFiles

DOCS = "name: Docs\nmodel: {provider: openai-compatible, id: small, endpoint: 'http://127.0.0.1:1/v1'}\n"
DRAFTER = "name: Drafter\ninternal: true\n"


@pytest.mark.parametrize(
    ("drafter", "agent_id", "expected"),
    [
        (DRAFTER, "__evo_agent__", "docs"),
        (DRAFTER + "model: {provider: offline}\n", "__evo_agent__", "__evo_agent__"),
        (DRAFTER, "docs", "docs"),
    ],
    ids=["internal without a model", "internal with one", "the agent itself"],
)
def test_who_answers(tmp_path: Path, drafter: str, agent_id: str, expected: str) -> None:
    halo = surface(tmp_path / ".halo", docs=DOCS, __evo_agent__=drafter)

    assert answering(tmp_path, halo, agent_id).id == expected


@pytest.mark.parametrize(
    "model",
    [
        "{provider: openai-compatible, id: small, endpoint: 'http://elsewhere.example/v1'}",
        "{provider: openai, id: small}",
        "{id: small}",
    ],
    ids=["another endpoint", "another provider", "none"],
)
def test_a_draft_cannot_move_the_model(tmp_path: Path, model: str) -> None:
    base = surface(tmp_path / "base", docs=DOCS)
    draft = surface(tmp_path / "draft", docs=f"name: Docs\nmodel: {model}\n")

    answered = answering(tmp_path, draft, "docs", reach=base).model

    assert (answered.provider, answered.endpoint) == ("openai-compatible", "http://127.0.0.1:1/v1")


def test_a_new_agent_of_a_draft_asks_the_judged_agents_model(tmp_path: Path) -> None:
    base = surface(tmp_path / "base", docs=DOCS)
    draft = surface(tmp_path / "draft", docs=DOCS, new="name: N\nmodel: {provider: openai, id: x}\n")

    assert answering(tmp_path, draft, "new", reach=base).model.endpoint == "http://127.0.0.1:1/v1"


def test_a_draft_may_name_another_model_at_the_same_place(tmp_path: Path) -> None:
    base = surface(tmp_path / "base", docs=DOCS)
    draft = surface(tmp_path / "draft", docs=DOCS.replace("small", "large"))

    assert answering(tmp_path, draft, "docs", reach=base).model.id == "large"


def surface(halo: Path, **agents: str) -> Path:
    for name, text in agents.items():
        (halo / "agents" / name).mkdir(parents=True)
        (halo / "agents" / name / "agent.yaml").write_text(text)
    return halo


def answering(tmp_path: Path, halo: Path, agent_id: str, *, reach: Path | None = None) -> AgentConfig:
    composed = compose(
        Surface(SurfaceFiles(halo), tmp_path / "global"), agent_id, workspace_root=tmp_path, working_dir="."
    )
    spec = ChildSpec(
        agent_id=agent_id,
        surface=halo,
        global_folder=tmp_path / "global",
        workspace=tmp_path,
        brief="",
        view=View(root=tmp_path, mounts=()),
        access="workspace",
        tools=None,
        model=None,
        session_folder=tmp_path / "session",
        log=tmp_path / "log",
        model_like="docs",
        reach=reach,
    )
    return answering_agent(spec, composed)
