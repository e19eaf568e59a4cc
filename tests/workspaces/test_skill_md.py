"""SKILL.md: the public format, Halo's keys in both places, and faults that close the door."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workspaces.conftest import Write
from workspaces.overrides import Surface
from workspaces.skill_md import SkillConfig, expand_arguments, load_skill, parse_skill


def parse(frontmatter: str, body: str = "Do it.\n") -> SkillConfig:
    return parse_skill(f"---\n{frontmatter}\n---\n{body}".encode(), skill_id="s", where="SKILL.md")


BASE = "name: s\ndescription: Does it."


def test_the_public_format_is_read() -> None:
    skill = parse(
        f"{BASE}\nlicense: MIT\ncompatibility: any\nallowed-tools: Bash Read\nmetadata: {{author: me}}"
    )
    assert skill.faults == ()
    assert (skill.name, skill.description, skill.license) == ("s", "Does it.", "MIT")
    assert skill.allowed_tools == ("Bash", "Read")
    assert skill.metadata == {"author": "me"}
    assert skill.body == "Do it.\n"
    assert not skill.restricted


@pytest.mark.parametrize(
    "frontmatter",
    [
        "command: /review\nrequiresAccess: workspace\nuser-invocable: false\ndisable-model-invocation: true\n"
        "verbs: [{name: run, desc: Runs.}, {name: wipe, requiresAccess: full}]",
        "metadata:\n  halo-command: review\n  halo-requiresAccess: workspace\n  halo-user-invocable: 'false'\n"
        "  halo-disable-model-invocation: 'true'\n"
        "  halo-verbs: '[{name: run, desc: Runs.}, {name: wipe, requiresAccess: full}]'",
    ],
)
def test_halos_keys_count_at_the_top_and_under_metadata(frontmatter: str) -> None:
    skill = parse(f"{BASE}\n{frontmatter}")
    assert skill.faults == ()
    assert (skill.command, skill.requires_access) == ("review", "workspace")
    assert (skill.user_invocable, skill.disable_model_invocation) == (False, True)
    assert [(verb.name, verb.description, verb.requires_access) for verb in skill.verbs] == [
        ("run", "Runs.", "workspace"),
        ("wipe", "", "full"),
    ]
    assert skill.restricted


def test_both_places_with_different_values_are_a_fault() -> None:
    assert parse(f"{BASE}\nrequiresAccess: readonly\nmetadata: {{halo-requiresAccess: full}}").broken
    assert not parse(f"{BASE}\nrequiresAccess: full\nmetadata: {{halo-requiresAccess: full}}").broken


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\nname: s\ndescription: Use it: always\n---\nbody", 3),
        ("---\nname: s\n---\nbody", None),
        ("---\nname: s\ndescription: d\nrequiresAccess: root\n---\nbody", 4),
        ("---\nname: s\ndescription: d\nverbs: [run]\n---\nbody", 4),
        ("---\nname: s\ndescription: d\nverbs:\n- {name: x, requiresAccess: 1}\n---\nbody", 5),
        ("---\nname: s\ndescription: d\nrequiresAccess: full\nrequiresAccess: readonly\n---\nbody", 5),
        ("---\nname: s\ndescription: d\ncommand: 'a b'\n---\nbody", 4),
        ("---\nname: s\nno end", 1),
        ("no frontmatter", 1),
        ("", 1),
        ("---\n- a\n---\n", 2),
    ],
)
def test_what_can_not_be_read_is_broken_listed_and_restricted(text: str, line: int | None) -> None:
    skill = parse_skill(text.encode(), skill_id="s", where="SKILL.md")
    assert skill.broken
    assert skill.restricted
    assert skill.requires_access == "full"
    assert skill.name == "s"
    assert [fault.line for fault in skill.faults if fault.severity == "fault"] == [line]


def test_unknown_frontmatter_is_kept_with_a_warning() -> None:
    skill = parse(f"{BASE}\nversion: 2")
    assert skill.extra == {"version": 2}
    assert [(fault.key, fault.line, fault.severity) for fault in skill.faults] == [("version", 4, "warning")]
    assert not skill.restricted


@pytest.mark.parametrize(
    "lock", ["halo-locked: true", "metadata: {halo-locked: true}", "metadata: {halo-locked: 'true'}"]
)
def test_a_lock_counts_wherever_it_stands(lock: str) -> None:
    assert parse(f"{BASE}\n{lock}").locked


def test_windows_line_ends_and_a_byte_order_mark_are_fine() -> None:
    data = b"\xef\xbb\xbf---\r\nname: s\r\ndescription: d\r\n---\r\nbody\r\n"
    skill = parse_skill(data, skill_id="s", where="SKILL.md")
    assert (skill.faults, skill.body) == ((), "body\n")


@pytest.mark.parametrize("data", [None, b"\xff\xfe", b"---\na: &a [*a]\n---\n", b"x" * 2_000_000])
def test_hostile_files_are_broken_skills(surface: Surface, in_workspace: Write, data: bytes | None) -> None:
    in_workspace(".halo/skills/s/notes.md", "")
    if data is not None:
        in_workspace(".halo/skills/s/SKILL.md", data)
    folder = surface.folder("skills", "s")
    assert folder is not None
    assert load_skill(folder).broken


@given(st.binary(max_size=200))
def test_any_bytes_are_a_skill_or_a_broken_one(data: bytes) -> None:
    skill = parse_skill(b"---\n" + data, skill_id="s", where="SKILL.md")
    assert skill.restricted or skill.description


def test_arguments_are_put_in_once() -> None:
    assert expand_arguments("a $1 b $2 c $ARGUMENTS d $3 e", "x $1 ") == "a x b $1 c x $1  d  e"
    assert expand_arguments("costs $0.50 and $ARGUMENTSX", "y") == "costs $0.50 and $ARGUMENTSX"
