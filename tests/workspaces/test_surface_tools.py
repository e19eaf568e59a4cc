"""``activate_skill``, ``list_agents``, ``query_agent``: from the turn's own surface, within the session's level."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.tools.context import ToolError
from agents.turn import AccessLevel
from tests.workspaces.conftest import Write
from workspaces.compose import compose
from workspaces.overrides import Surface
from workspaces.surface_tools import NAMES, surface_tools

DEPLOY = """---
name: deploy
description: Deploys.
verbs:
  - {name: plan, desc: Say what would happen}
  - {name: run, desc: Do it, requiresAccess: full}
---
Deploy like this: $1.
"""


@pytest.fixture
def tools(surface: Surface, root: Path, in_workspace: Write) -> Callable[..., dict[str, Any]]:
    in_workspace(
        ".halo/agents/helper/agent.yaml",
        "name: Helper\nteam: [other]\ntools: [activate_skill, list_agents, query_agent]\n"
        "skills: [deploy, secret, manual, broken]\n",
    )
    in_workspace(".halo/agents/other/agent.yaml", "name: Other\ndescription: Knows\n  all.\ntools: [glob]\n")
    in_workspace(".halo/agents/quiet/agent.yaml", "name: Quiet\ninternal: true\n")
    in_workspace(".halo/skills/deploy/SKILL.md", DEPLOY)
    for name, line in (("secret", "requiresAccess: workspace"), ("manual", "disable-model-invocation: true")):
        in_workspace(
            f".halo/skills/{name}/SKILL.md",
            f"---\nname: {name}\ndescription: D.\n{line}\n---\nBody of {name}.\n",
        )
    in_workspace(".halo/skills/broken/SKILL.md", "---\nname: broken\ndescription: a: b: c\n---\nBody.\n")
    in_workspace(".halo/skills/unlisted/SKILL.md", "---\nname: unlisted\ndescription: D.\n---\nBody.\n")

    def make(access: AccessLevel = "full", names: tuple[str, ...] = NAMES) -> dict[str, Any]:
        composed = compose(surface, "helper", workspace_root=root)
        return {tool.__name__: tool for tool in surface_tools(composed, names=names, access=access)}

    return make


def test_only_what_the_agent_lists(tools: Callable[..., dict[str, Any]]) -> None:
    assert set(tools(names=("glob", "list_agents"))) == {"list_agents"}


def test_a_skills_body_with_the_place_of_its_files(tools: Callable[..., dict[str, Any]]) -> None:
    told = tools()["activate_skill"]("deploy")
    assert told.startswith("Skill deploy, from .halo/skills/deploy/SKILL.md;")
    assert told.endswith("Deploy like this: $1.\n")
    assert "Not open" not in told
    assert "Do this: run. Do it" in tools()["activate_skill"]("deploy", "run")


@pytest.mark.parametrize("access", ["workspace", "readonly"])
def test_a_verb_above_the_sessions_level_is_refused_and_named(
    tools: Callable[..., dict[str, Any]], access: AccessLevel
) -> None:
    activate = tools(access)["activate_skill"]
    assert f"Not open to this session (its level is {access}): run." in activate("deploy")
    assert "Say what would happen" in activate("deploy", "plan")
    with pytest.raises(ToolError, match=f"deploy run needs a session at level full; this one has {access}"):
        activate("deploy", "run")


def test_a_skill_above_the_sessions_level_is_refused(tools: Callable[..., dict[str, Any]]) -> None:
    assert "Body of secret." in tools("full")["activate_skill"]("secret")
    assert "Body of secret." in tools("workspace")["activate_skill"]("secret")
    with pytest.raises(ToolError, match="needs a session at level workspace; this one has readonly"):
        tools("readonly")["activate_skill"]("secret")


@pytest.mark.parametrize("name", ["unlisted", "manual", "nothing", "../deploy"])
def test_what_is_not_offered_is_not_there(tools: Callable[..., dict[str, Any]], name: str) -> None:
    with pytest.raises(ToolError, match=r"There is no skill .*Skills: deploy, secret\."):
        tools()["activate_skill"](name)


def test_a_broken_skill_says_where(tools: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(ToolError, match=r"can't be used until its file is mended.*SKILL\.md"):
        tools()["activate_skill"]("broken")


def test_an_unknown_verb_names_the_known(tools: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(ToolError, match=r"no verb 'fly'\. Verbs: plan, run\."):
        tools()["activate_skill"]("deploy", "fly")


def test_the_agents_there_are(tools: Callable[..., dict[str, Any]]) -> None:
    lines = tools()["list_agents"]().splitlines()
    assert "- helper: Helper [this agent]" in lines
    assert "- other: Knows all. [in your team]" in lines
    assert "quiet" not in str(lines)
    told = tools()["query_agent"]("other")
    assert "tools: glob" in told and "you may delegate to it: yes" in told
    assert "you may delegate to it: no" in tools()["query_agent"]("helper")
    with pytest.raises(ToolError, match="no agent 'quiet'"):
        tools()["query_agent"]("quiet")
