"""Which model drafter, scorer and merger ask: their own, else the one whose conversation is learned from."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.turn import View
from evolution.child import answering_agent
from evolution.phases.context import ChildSpec
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
    halo = tmp_path / ".halo"
    for name, text in (("docs", DOCS), ("__evo_agent__", drafter)):
        (halo / "agents" / name).mkdir(parents=True)
        (halo / "agents" / name / "agent.yaml").write_text(text)
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
    )

    assert answering_agent(spec, composed).id == expected
