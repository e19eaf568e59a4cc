"""Generated pairs of ``agent.yaml`` and ``SKILL.md``, judged by what a session would load from them.

The oracle is the loader, not the text: whatever trick of YAML a draft uses, nothing that the category table
calls manual may differ in what is loaded once the gates have let it pass (invariant 8).
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evolution.agent_changes import KNOWN_TOOLS
from evolution.changes import classify
from evolution.gates import GateInput, decide
from tests.evolution.scores import perfect
from workspaces.agent_yaml import AgentConfig, load_agent
from workspaces.skill_md import SkillConfig, parse_skill

WORDS = st.sampled_from(
    ["", "a", "Guide", "yes", "no", "true", "~", "1", "full", "workspace", "x: y", "é\u202e"]
)
ODD = st.one_of(
    WORDS, st.none(), st.booleans(), st.integers(-2, 6), st.just(0.5), st.lists(WORDS, max_size=2),
    st.dictionaries(WORDS, WORDS, max_size=2),
)  # fmt: skip
TOOLS = st.lists(
    st.sampled_from(["file_read", "grep", "glob", "web_fetch", "shell_exec", "relay_send", "a2a_send",
                     "node_run", "node_anything", "mcp_x", "File_Read", "file_read ", "shell_exec\u200b"]),
    max_size=4,
)  # fmt: skip
NAMES = st.lists(st.sampled_from(["review", "plan", "deploy", "scout"]), max_size=3)


def either(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(usual, usual, usual, ODD)


MODEL = st.fixed_dictionaries(
    {},
    optional={
        "provider": either(st.sampled_from(["offline", "anthropic", "openai"])),
        "id": either(WORDS),
        "endpoint": either(st.sampled_from(["http://x", "http://y"])),
        "maxTokens": either(st.sampled_from([1000, 2000])),
        "promptCaching": either(st.sampled_from([True, "5m", "1h"])),
        "thinking": either(st.fixed_dictionaries({"enabled": st.booleans()}, optional={"budget": ODD})),
        "verbosity": either(st.sampled_from(["low", "high"])),
        "headers": ODD,
    },
)
AGENT = st.fixed_dictionaries(
    {"name": either(st.sampled_from(["Guide", "Guide", "Boss"]))},
    optional={
        "description": either(WORDS),
        "system_prompt": either(WORDS),
        "model": either(MODEL),
        "context": either(st.fixed_dictionaries({"maxTokens": st.sampled_from([5000, 6000])})),
        "tools": either(TOOLS),
        "skills": either(NAMES),
        "team": either(NAMES),
        "priority": either(st.integers(0, 2)),
        "internal": either(st.booleans()),
        "halo-locked": either(st.booleans()),
        "permissions": ODD,
        "<<": st.dictionaries(st.sampled_from(["tools", "priority", "internal", "team"]), ODD, max_size=2),
    },
)
VERBS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["run", "stop"])},
        optional={"desc": WORDS, "requiresAccess": st.sampled_from(["full", "workspace", None]), "run": ODD},
    ),
    max_size=3,
)
HALO: dict[str, st.SearchStrategy[Any]] = {
    "command": either(st.sampled_from(["review", "deploy"])),
    "requiresAccess": either(st.sampled_from(["full", "workspace"])),
    "verbs": either(VERBS),
    "disable-model-invocation": either(st.booleans()),
    "user-invocable": either(st.booleans()),
}
SKILL = st.fixed_dictionaries(
    {"name": either(st.just("review")), "description": either(st.sampled_from(["Reviews.", "Looks."]))},
    optional={
        **HALO,
        "license": either(WORDS),
        "allowed-tools": either(st.sampled_from(["file_read", "shell_exec"])),
        "metadata": either(
            st.fixed_dictionaries(
                {},
                optional={
                    **{f"halo-{name}": values for name, values in HALO.items()},
                    "halo-locked": st.booleans(),
                    "author": WORDS,
                },
            )
        ),
        "hooks": ODD,
    },
)
NOISE = st.sampled_from(
    ["", "# a comment\n", "priority: 2\n", "internal: true\n", "tools: [shell_exec]\n", "? team\n: [scout]\n",
     "\"priority\": 2\n", "'tools': [web_fetch]\n", "!!str priority: 2\n", "<<: {priority: 2}\n", "%YAML 1.1\n",
     "command: deploy\n", "requiresAccess: null\n", "\"requiresAccess\": readonly\n", "metadata: {halo-command: x}\n",
     "---\n", "...\n", "\ufeff", "\t", "\r\n", "\u2028internal: true\n", "\x85internal: true\n"]
)  # fmt: skip


@st.composite
def edited(draw: st.DrawFn, kind: st.SearchStrategy[dict[Any, Any]]) -> tuple[str, str]:
    """A text and another that shares most of it; each in a style of its own, with something slipped in."""
    old, other = draw(kind), draw(kind)
    new = dict(old)
    for key in draw(st.lists(st.sampled_from(sorted({*old, *other})), max_size=3)):
        if key in other:
            new[key] = other[key]
        else:
            new.pop(key, None)
    return dumped(draw, old), slipped(draw, dumped(draw, new))


def dumped(draw: st.DrawFn, value: dict[Any, Any]) -> str:
    return yaml.safe_dump(
        value,
        allow_unicode=draw(st.booleans()),
        default_flow_style=draw(st.sampled_from([None, False])),
        default_style=draw(st.sampled_from([None, None, '"'])),
        sort_keys=draw(st.booleans()),
    ).replace("'<<':", "<<:")


def slipped(draw: st.DrawFn, text: str) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(draw(st.integers(0, len(lines))), draw(NOISE))
    return "".join(lines)


class InMemory:
    """An agent's folder that isn't on disk."""

    id, scope = "guide", "workspace"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, name: str) -> bytes:
        return self.data

    def shown(self, name: str = "") -> str:
        return name


def agent_of(text: str) -> AgentConfig:
    return load_agent(InMemory(text.encode()))  # type: ignore[arg-type]


def skill_of(text: str) -> SkillConfig:
    return parse_skill(text.encode(), skill_id="review", where="SKILL.md")


def passes(rel: str, old: str, new: str, *, level: str) -> bool:
    """With perfect evidence and beside an agent's other file."""
    live = {"agents/guide/AGENT.md": b"x", rel: old.encode()}
    changes = classify(live=live, proposed={rel: new.encode()}, hidden={})
    evidence = GateInput(source_access="full", level=level, threshold=0, changes=changes, score=perfect())
    return decide(evidence).passed


def manual_of_agent(agent: AgentConfig) -> tuple[Any, ...]:
    """What no change may touch by itself, as loaded."""
    return (
        agent.name, agent.priority, agent.team, agent.internal, agent.locked, dict(agent.extra),
        agent.model.provider, agent.model.endpoint,
    )  # fmt: skip


def manual_of_skill(skill: SkillConfig) -> tuple[Any, ...]:
    return (
        skill.command, skill.requires_access, sorted((verb.name, verb.requires_access or "") for verb in skill.verbs),
        skill.license, skill.compatibility, skill.allowed_tools, skill.locked, dict(skill.extra),
    )  # fmt: skip


def skill_text(head: str) -> str:
    return f"---\n{head}---\nLook twice.\n"


@given(pair=edited(AGENT))
@example(pair=("name: a\nmodel: {provider: x}\n", "name: a\nmodel: {<<: {provider: y}}\n"))
@example(pair=("name: a\ntools: [grep]\n", "name: a\ntools: [grep, 'shell_exec']\n"))
@example(pair=("name: a\ninternal: false\n", "name: a\ninternal: 'false'\n"))
def test_no_pair_of_agent_yaml_passes_with_a_manual_change(pair: tuple[str, str]) -> None:
    old, new = pair
    if not passes("agents/guide/agent.yaml", old, new, level="L3"):
        return
    before, after = agent_of(old), agent_of(new)
    assert not after.broken
    assert manual_of_agent(after) == manual_of_agent(before)
    assert set(after.tools) - set(before.tools) <= KNOWN_TOOLS
    assert set(after.skills) <= set(before.skills)


@given(pair=edited(AGENT))
def test_no_pair_of_agent_yaml_passes_below_l3(pair: tuple[str, str]) -> None:
    assert pair[0] == pair[1] or not passes("agents/guide/agent.yaml", *pair, level="L2")


@given(pair=edited(SKILL), level=st.sampled_from(["L2", "L3"]))
@example(
    pair=("name: a\ndescription: b\ncommand: c\n", "name: a\ndescription: b\n<<: {command: d}\n"), level="L3"
)
def test_no_pair_of_skill_md_passes_with_a_manual_change(pair: tuple[str, str], level: str) -> None:
    old, new = map(skill_text, pair)
    if not passes("skills/review/SKILL.md", old, new, level=level):
        return
    before, after = skill_of(old), skill_of(new)
    assert not after.broken
    assert manual_of_skill(after) == manual_of_skill(before)
    if level == "L2":
        assert (after.disable_model_invocation, after.user_invocable, after.verbs) == (
            before.disable_model_invocation, before.user_invocable, before.verbs,
        )  # fmt: skip


@given(old=AGENT, text=st.text(max_size=30))
@settings(max_examples=50)
def test_a_new_agent_never_passes_whatever_it_says(old: dict[str, Any], text: str) -> None:
    live = {"agents/guide/agent.yaml": b"name: Guide\n"}
    proposed = {
        "agents/fresh/agent.yaml": yaml.safe_dump(old).encode(),
        "agents/fresh/AGENT.md": text.encode(),
    }
    changes = classify(live=live, proposed=proposed, hidden={})
    given = GateInput(source_access="full", level="L3", threshold=0, changes=changes, score=perfect())
    assert not decide(given).passed


@pytest.mark.parametrize("level", ["L2", "L3"])
def test_the_pairs_are_no_empty_promise(level: str) -> None:
    """Some of what the strategies make does pass, or the properties above would say nothing."""
    agent = ("name: Guide\ntools: [grep]\n", "name: Guide\ntools: [grep, glob]\n")
    skill = tuple(map(skill_text, ("name: a\ndescription: Reviews.\n", "name: a\ndescription: Looks.\n")))
    assert passes("agents/guide/agent.yaml", *agent, level=level) == (level == "L3")
    assert passes("skills/review/SKILL.md", skill[0], skill[1], level=level)
