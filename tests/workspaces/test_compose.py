"""What stands in a session's system prompt, in which order, and from which file."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.faults import Fault
from core.paths import UnsafePathError
from tests.workspaces.conftest import Write
from workspaces.compose import BrokenAgentError, UnknownAgentError, compose, list_agents
from workspaces.overrides import Surface


@pytest.fixture
def full(surface: Surface, in_workspace: Write, in_global: Write) -> Surface:
    in_global("USER.md", "profile")
    in_global("INSTRUCTIONS.md", "machine instructions")
    in_global("prompts/all/b.md", "all-b")
    in_global("prompts/all/a.md", "all-a")
    in_global("prompts/root/r.md", "root-r")
    in_global("prompts/bootstrap/x.md", "bootstrap-x")
    in_workspace(".halo/agents/helper/agent.yaml", "name: Helper\nteam: [other, helper, ghost]\n")
    in_workspace(".halo/agents/helper/AGENT.md", "You are Helper.")
    in_global("agents/other/agent.yaml", "name: Other\ndescription: Knows\n  everything.\n")
    in_workspace(".halo/INDEX.md", "the index")
    in_workspace("AGENTS.md", "the project")
    return surface


def positions(text: str, *parts: str) -> list[int]:
    return [text.index(part) for part in parts]


def test_the_order_of_a_root_session(full: Surface, root: Path, in_workspace: Write) -> None:
    in_workspace(".halo/INSTRUCTIONS.md", "own instructions")
    in_workspace("a/.halo/INSTRUCTIONS.md", "for a")
    in_workspace("a/b/.halo/INSTRUCTIONS.md", "for b")
    prompt = compose(full, "helper", workspace_root=root, working_dir="a/b").system_prompt
    found = positions(
        prompt,
        "profile",
        "You are Helper.",
        "- other: Knows everything.",
        "own instructions",
        "for a",
        "for b",
        "the index",
        "the project",
        f"Working directory: {root}/a/b",
        "all-a",
        "all-b",
        "root-r",
    )
    assert found == sorted(found)
    assert "machine instructions" not in prompt
    assert "bootstrap" not in prompt
    assert "ghost" not in prompt


def test_a_sub_session_has_no_profile_and_no_root_prompts(full: Surface, root: Path) -> None:
    prompt = compose(full, "helper", workspace_root=root, sub_session=True).system_prompt
    assert "You are Helper." in prompt
    assert "machine instructions" in prompt
    assert "all-a" in prompt
    for absent in ("profile", "root-r", "bootstrap-x"):
        assert absent not in prompt


def test_without_a_profile_anywhere_bootstrap_comes_first(full: Surface, root: Path, home: object) -> None:
    (full._layers[1][1].halo / "USER.md").unlink()
    prompt = compose(full, "helper", workspace_root=root).system_prompt
    assert prompt.startswith('<prompt file="prompts/bootstrap/x.md">')


def test_an_internal_agent_gets_its_own_words_and_nothing_else(
    full: Surface, root: Path, in_global: Write
) -> None:
    in_global("agents/__score__/agent.yaml", "name: Scorer\ninternal: true\ntools: [file_read]\n")
    in_global("agents/__score__/AGENT.md", "Score it.\n")
    composed = compose(full, "__score__", workspace_root=root)
    assert composed.system_prompt == "Score it."
    assert composed.agent.tools == ("file_read",)
    assert [file.rel for file in composed.files] == ["agents/__score__/AGENT.md"]


def test_agent_md_or_else_the_system_prompt_of_agent_yaml(
    full: Surface, root: Path, in_global: Write
) -> None:
    in_global("agents/other/agent.yaml", "name: Other\nsystem_prompt: You are Other.\n")
    assert "You are Other." in compose(full, "other", workspace_root=root).system_prompt
    in_global("agents/other/AGENT.md", "You are better.")
    prompt = compose(full, "other", workspace_root=root).system_prompt
    assert "You are better." in prompt
    assert "You are Other." not in prompt


def test_files_name_their_scope(full: Surface, root: Path) -> None:
    scopes = {file.rel: file.scope for file in compose(full, "helper", workspace_root=root).files}
    assert scopes["agents/helper/AGENT.md"] == "workspace"
    assert scopes["USER.md"] == "global"


def test_a_broken_agent_ends_only_its_own_turns(full: Surface, root: Path, in_workspace: Write) -> None:
    in_workspace(".halo/agents/broken/agent.yaml", "name: x\ndescription: a: b\n")
    with pytest.raises(BrokenAgentError, match=r"agents/broken/agent\.yaml:2"):
        compose(full, "broken", workspace_root=root)
    composed = compose(full, "helper", workspace_root=root)
    assert {agent.id: agent.broken for agent in composed.agents} == {
        "broken": True,
        "helper": False,
        "other": False,
    }
    assert any("broken" in fault.file for fault in composed.faults)


@pytest.mark.parametrize("agent_id", ["nobody", "../helper", "", "a\0b", "helper/", ".", "x" * 300])
def test_an_agent_that_is_not_there_is_named_with_those_that_are(
    full: Surface, root: Path, agent_id: str
) -> None:
    with pytest.raises(UnknownAgentError, match="helper, other"):
        compose(full, agent_id, workspace_root=root)


@pytest.mark.parametrize("working_dir", ["..", "/etc", "a/../..", "a\0b", "out"])
def test_a_working_directory_outside_is_refused(full: Surface, root: Path, working_dir: str) -> None:
    (root / "out").symlink_to(root.parent)
    with pytest.raises(UnsafePathError):
        compose(full, "helper", workspace_root=root, working_dir=working_dir)


def test_prompt_files_that_lead_out_are_left_out_and_named(
    full: Surface, root: Path, in_workspace: Write, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    (root / ".halo" / "INDEX.md").unlink()
    (root / ".halo" / "INDEX.md").symlink_to(secret)
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(secret)
    in_workspace(".halo/prompts/all/ok.md", "fine")
    (root / ".halo" / "prompts" / "all" / "z.md").symlink_to(secret)
    composed = compose(full, "helper", workspace_root=root)
    assert "the secret" not in composed.system_prompt
    assert "fine" in composed.system_prompt
    named = " ".join(str(fault) for fault in composed.faults)
    for rel in ("INDEX.md", "AGENTS.md", "z.md"):
        assert rel in named


def test_huge_and_undecodable_files_are_harmless(full: Surface, root: Path, in_workspace: Write) -> None:
    in_workspace(".halo/INSTRUCTIONS.md", b"x" * (2 * 1024 * 1024))
    in_workspace(".halo/INDEX.md", b"good\n\xff\xfe bad")
    composed = compose(full, "helper", workspace_root=root)
    assert len(composed.system_prompt) < 10_000
    assert "good" in composed.system_prompt
    faults = {fault.file: fault for fault in composed.faults}
    assert faults[".halo/INDEX.md"].line == 2
    assert ".halo/INSTRUCTIONS.md" in faults


def test_listing_never_raises_for_odd_names(surface: Surface, root: Path, in_workspace: Write) -> None:
    in_workspace(".halo/agents/good/agent.yaml", "name: Good")
    in_workspace(".halo/agents/README.md", "not an agent")
    in_workspace(".halo/agents/.git/x", "hidden")
    in_workspace(".halo/agents/a b\u202e/agent.yaml", "name: Odd")
    (root / ".halo" / "agents" / "loop").symlink_to("loop")
    (root / ".halo" / "agents" / "out").symlink_to("/etc")
    faults: list[Fault] = []
    assert [agent.id for agent in list_agents(surface, faults)] == ["good"]
    assert len(faults) == 3
    assert not any("\u202e" in str(fault) for fault in faults)
