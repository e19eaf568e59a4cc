"""agent.yaml: what a person wrote, typed; what they got wrong, named."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.workspaces.conftest import Write
from workspaces.agent_yaml import AgentConfig, load_agent, parse_agent
from workspaces.overrides import Surface

FULL = """\
name: Reviewer
description: Reads.
model:
  provider: anthropic
  id: m-1
  maxTokens: 9000
  promptCaching: 1h
  thinking: {enabled: true, effort: high}
  verbosity: low
system_prompt: You review.
context: {maxTokens: 100000, compressAt: 0.5}
tools: [file_read, grep]
skills: [a]
team: [b]
priority: 3
halo-locked: true
"""


def load(surface: Surface, agent_id: str = "a") -> AgentConfig:
    folder = surface.folder("agents", agent_id)
    assert folder is not None
    return load_agent(folder)


def test_every_field_is_read(surface: Surface, in_workspace: Write) -> None:
    in_workspace(".halo/agents/a/agent.yaml", FULL)
    agent = load(surface)
    assert (agent.id, agent.scope, agent.name, agent.description) == ("a", "workspace", "Reviewer", "Reads.")
    assert (agent.model.provider, agent.model.id, agent.model.max_tokens) == ("anthropic", "m-1", 9000)
    assert agent.model.prompt_caching == "1h"
    assert agent.model.thinking == {"enabled": True, "effort": "high"}
    assert (agent.context_max_tokens, agent.compress_at, agent.priority) == (100_000, 0.5, 3)
    assert (agent.tools, agent.skills, agent.team) == (("file_read", "grep"), ("a",), ("b",))
    assert agent.locked
    assert not agent.broken
    assert agent.faults == ()


def test_a_name_is_enough(surface: Surface, in_workspace: Write) -> None:
    in_workspace(".halo/agents/a/agent.yaml", "name: A\n")
    agent = load(surface)
    assert not agent.broken
    assert (agent.tools, agent.team, agent.internal, agent.compress_at) == ((), (), False, 0.8)


@pytest.mark.parametrize(
    ("text", "key", "line", "found", "wanted"),
    [
        ("description: x\n", "name", None, "nothing", "required"),
        ("name: ''\n", "name", 1, "''", "required"),
        ("name: [x]\n", "name", 1, "a list", "text"),
        ("name: A\ntools: file_read\n", "tools", 2, "text", "a list of texts"),
        ("name: A\ntools: [1]\n", "tools", 2, "[1]", "a list of texts"),
        ("name: A\nmodel: opus\n", "model", 2, "text", "a mapping"),
        ("name: A\nmodel:\n  maxTokens: lots\n", "model.maxTokens", 3, "'lots'", "whole number"),
        ("name: A\nmodel:\n  promptCaching: 2h\n", "model.promptCaching", 3, "'2h'", "5m"),
        ("name: A\nmodel: {promptCaching: 1}\n", "model.promptCaching", 2, "1", "5m"),
        ("name: A\nmodel: {thinking: {effort: 11}}\n", "model.thinking.effort", 2, "11", "high"),
        ("name: A\ncontext: {compressAt: 8}\n", "context.compressAt", 2, "8", "from 0.1 to 1"),
        ("name: A\ninternal: 'yes'\n", "internal", 2, "text", "true or false"),
        ("name: A\npriority: true\n", "priority", 2, "true or false", "whole number"),
        ("name: A\ntools: [a]\ntools: [b]\n", "tools", 3, "twice", "once"),
        ("name: A\ndescription: a: b\n", "", 2, "mapping values", "quotes"),
        ("- name\n", "", 1, "a list", "a mapping"),
        ("", "", 1, "nothing", "a mapping"),
    ],
)
def test_a_mistake_names_file_key_line_and_what_is_wanted(
    surface: Surface, in_workspace: Write, text: str, key: str, line: int | None, found: str, wanted: str
) -> None:
    in_workspace(".halo/agents/a/agent.yaml", text)
    agent = load(surface)
    assert agent.broken
    [fault] = agent.faults
    assert (fault.file, fault.key, fault.line) == (".halo/agents/a/agent.yaml", key, line)
    assert found in fault.found
    assert wanted in fault.wanted


def test_unknown_keys_are_kept_and_only_warned_of(surface: Surface, in_workspace: Write) -> None:
    in_workspace(".halo/agents/a/agent.yaml", "name: A\ntool: [x]\nmodel: {temperature: 1}\n")
    agent = load(surface)
    assert not agent.broken
    assert agent.extra == {"tool": ["x"]}
    assert {(w.key, w.severity) for w in agent.faults} == {
        ("tool", "warning"),
        ("model.temperature", "warning"),
    }
    assert any("tools" in warning.wanted for warning in agent.faults)


def test_the_same_value_twice_is_a_warning(surface: Surface, in_workspace: Write) -> None:
    in_workspace(".halo/agents/a/agent.yaml", "name: A\nname: A\n")
    assert not load(surface).broken


def test_a_folder_without_the_file_is_broken(surface: Surface, in_workspace: Write) -> None:
    in_workspace(".halo/agents/a/AGENT.md", "hi")
    assert load(surface).broken


@pytest.mark.parametrize("data", [b"\xff", b"a: &a [*a]", b"x" * 400_000, b"name: \x00", b"[" * 9000])
def test_hostile_files_are_broken_agents(surface: Surface, in_workspace: Write, data: bytes) -> None:
    in_workspace(".halo/agents/a/agent.yaml", data)
    agent = load(surface)
    assert agent.broken
    assert len(str(agent.faults[0])) < 1000


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_VALUES = (
    _SCALARS | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.text(max_size=5), _SCALARS, max_size=3)
)
_TOP = ("name", "description", "model", "system_prompt", "context", "tools", "team", "priority", "internal")
_MODEL = ("provider", "id", "maxTokens", "thinking", "promptCaching", "verbosity", "compressAt")


@given(
    st.dictionaries(
        st.sampled_from(_TOP),
        _VALUES | st.dictionaries(st.sampled_from(_MODEL), _VALUES, max_size=3),
        max_size=6,
    )
)
def test_any_mapping_is_an_agent_or_a_fault(value: dict[str, object]) -> None:
    _, faults = parse_agent(yaml.safe_dump(value, allow_unicode=True).encode(), where="agent.yaml")
    for fault in faults:
        assert fault.found
        assert fault.wanted
