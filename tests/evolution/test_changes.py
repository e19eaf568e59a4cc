"""Every row of the category table and its opposite; what differs and what only seems to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.changes import Category, Change, Content, NoFile, classify, unit
from evolution.gates import GateInput, decide
from tests.evolution.scores import perfect
from workspaces.overrides import MAX_PROMPT_BYTES

AGENT = """\
name: Guide
description: Answers.
model: {provider: offline, id: m1, endpoint: "http://x", maxTokens: 1000}
system_prompt: Be good.
context: {maxTokens: 5000}
tools: [file_read, grep, web_fetch]
skills: [review, plan]
team: [scout]
priority: 1
"""
SKILL = """\
---
name: review
description: Reviews.
command: review
requiresAccess: workspace
disable-model-invocation: false
user-invocable: true
verbs:
- {name: run, desc: Runs it.}
- {name: stop, desc: Stops it., requiresAccess: full}
license: MIT
---
Look twice.
"""
LIVE: dict[str, Content] = {
    "INSTRUCTIONS.md": b"Be brief.\n",
    "INDEX.md": b"Index.\n",
    "USER.md": b"Ada.\n",
    "agents/guide/agent.yaml": AGENT.encode(),
    "agents/guide/AGENT.md": b"You are the guide.\n",
    "agents/guide/notes.txt": b"n\n",
    "agents/inner/agent.yaml": b"name: Inner\ninternal: true\n",
    "agents/inner/AGENT.md": b"Inner.\n",
    "agents/broken/agent.yaml": b"name: [\n",
    "agents/broken/AGENT.md": b"Broken.\n",
    "skills/review/SKILL.md": SKILL.encode(),
    "skills/review/helper.py": b"pass\n",
    "prompts/all/style.md": b"Style.\n",
}
HIDDEN: dict[str, Content] = {
    "INSTRUCTIONS.md": b"Global.\n",
    "agents/scout/agent.yaml": b"name: Scout\ntools: [grep]\n",
    "agents/scout/AGENT.md": b"Scout.\n",
    "agents/__score__/agent.yaml": b"name: Score\ninternal: true\n",
    "agents/__score__/AGENT.md": b"Score.\n",
    "skills/plan/SKILL.md": b"---\nname: plan\ndescription: Plans.\n---\nPlan.\n",
    "prompts/root/a.md": b"A.\n",
    "prompts/root/b.md": b"B.\n",
}
PROMPT, CAPABILITY, MANUAL = Category.PROMPT, Category.CAPABILITY, Category.MANUAL


def one(rel: str, content: str | bytes | NoFile | None) -> Change:
    data = content.encode() if isinstance(content, str) else content
    changes = classify(live=LIVE, proposed={rel: data}, hidden=HIDDEN)
    assert [change.rel for change in changes] == [rel]
    return changes[0]


def agent_with(old: str, new: str) -> Category:
    assert old in AGENT
    return one("agents/guide/agent.yaml", AGENT.replace(old, new)).category


def skill_with(old: str, new: str) -> Category:
    assert old in SKILL
    return one("skills/review/SKILL.md", SKILL.replace(old, new)).category


@pytest.mark.parametrize(
    "rel",
    [
        "INSTRUCTIONS.md",
        "INDEX.md",
        "agents/guide/AGENT.md",
        "prompts/all/style.md",
        "prompts/all/new.md",
        "prompts/bootstrap/hello.md",
    ],
)
def test_prompt_files_are_prompt(rel: str) -> None:
    assert one(rel, "New words.\n").category is PROMPT


@pytest.mark.parametrize(
    "rel",
    [
        "USER.md",
        "instructions.md",
        "INSTRUCTIONS.md/x",
        "agents/guide/notes.txt",
        "agents/guide/sub/AGENT.md",
        "agents/new/AGENT.md",
        "agents/new/agent.yaml",
        "agents/inner/AGENT.md",
        "agents/broken/AGENT.md",
        "agents/__other__/AGENT.md",
        "skills/new/SKILL.md",
        "skills/review/helper.py",
        "skills/review/sub/SKILL.md",
        "prompts/all/sub/x.md",
        "prompts/all/x.txt",
        "prompts/all/.x.md",
        "prompts/other/x.md",
        "docs/x.md",
        "settings.yaml",
        "../INSTRUCTIONS.md",
        "agents/guide/../guide/AGENT.md",
        "prompts/all/a\nb.md",
        "prompts/all/a\x7fb.md",
        "prompts/all/a\u2028b.md",
    ],
)
def test_other_paths_are_manual(rel: str) -> None:
    assert one(rel, "name: x\n").category is MANUAL


@pytest.mark.parametrize("rel", sorted(LIVE))
def test_a_deletion_is_manual(rel: str) -> None:
    assert one(rel, None).category is MANUAL


@pytest.mark.parametrize("rel", ["INSTRUCTIONS.md", "agents/guide/AGENT.md", "prompts/all/style.md"])
@pytest.mark.parametrize("content", [NoFile.SYMLINK, b"\xff\xfe", b"a\0b", b"x" * (MAX_PROMPT_BYTES + 1)])
def test_symlinks_and_what_is_no_text_are_manual(rel: str, content: bytes | NoFile) -> None:
    assert one(rel, content).category is MANUAL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("description: Answers.", "description: Answers well."),
        ("description: Answers.\n", ""),
        ("Be good.", "Be better."),
        ("{maxTokens: 5000}", "{maxTokens: 6000, compressAt: 0.5}"),
        ("context: {maxTokens: 5000}\n", ""),
        ("[file_read, grep, web_fetch]", "[file_read, grep]"),
        ("tools: [file_read, grep, web_fetch]\n", ""),
        ("[file_read, grep, web_fetch]", "[grep, web_fetch, file_read]"),
        ("[file_read, grep, web_fetch]", "[file_read, grep, web_fetch, glob]"),
        ("[review, plan]", "[review]"),
        ("skills: [review, plan]\n", ""),
        ("id: m1", "id: m2"),
        ("maxTokens: 1000", "maxTokens: 2000"),
        ("maxTokens: 1000", "maxTokens: 1000, promptCaching: 5m"),
        ("maxTokens: 1000", "maxTokens: 1000, thinking: {enabled: true}"),
        ("maxTokens: 1000", "maxTokens: 1000, thinking: {enabled: true, effort: high}"),
        ("maxTokens: 1000", "maxTokens: 1000, verbosity: low"),
        ("name: Guide\n", "# A comment\nname: Guide\n"),
        ("[scout]", "['scout']"),
    ],
)
def test_capability_of_agent_yaml(old: str, new: str) -> None:
    assert agent_with(old, new) is CAPABILITY


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("priority: 1", "priority: 2"),
        ("maxTokens: 1000", "maxTokens: 1000, thinking: {enabled: true, budget: 9}"),
        ("[scout]", "[scout, guide]"),
        ("team: [scout]\n", ""),
        ("name: Guide", "name: Boss"),
        ("name: Guide\n", ""),
        ("priority: 1\n", "priority: 1\ninternal: true\n"),
        ("priority: 1\n", "priority: 1\ninternal: false\n"),
        ("priority: 1\n", "priority: 1\nhalo-locked: true\n"),
        ("priority: 1\n", "priority: 1\nunknown: 1\n"),
        ("priority: 1\n", "priority: 1\n5: x\n"),
        ("provider: offline", "provider: anthropic"),
        ("http://x", "http://y"),
        ("maxTokens: 1000", "maxTokens: 1000, temperature: 1"),
        ("{maxTokens: 5000}", "{maxTokens: 5000, keep: 1}"),
        ("maxTokens: 1000", "maxTokens: many"),
        ("description: Answers.", "description: [a]"),
        ("[review, plan]", "[review, plan, deploy]"),
        ("priority: 1", "priority: 1.0"),
        ("priority: 1", "priority: true"),
        ("name: Guide\n", "name: Guide\nname: Boss\n"),
        ("priority: 1\n", "priority: 2\npriority: 1\n"),
        ("name: Guide", "name: ["),
        (AGENT, "- a list\n"),
        (AGENT, ""),
        *(
            ("[file_read, grep, web_fetch]", f"[file_read, grep, web_fetch, {name}]")
            for name in (
                "shell_exec",
                "relay_send",
                "relay_read",
                "a2a_send",
                "node_run",
                "'node_*'",
                "mcp_x",
            )
        ),
        ("[file_read, grep, web_fetch]", "file_read"),
    ],
)
def test_manual_of_agent_yaml(old: str, new: str) -> None:
    assert agent_with(old, new) is MANUAL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1: x", "true: x"),
        ("1: x", "1.0: x"),
        ("odd: 0.0", "odd: -0.0"),
        ("odd: 2001-12-14t21:59:43-05:00", "odd: 2001-12-15t02:59:43Z"),
        ("odd: {1: x}", "odd: {true: x}"),
        ("odd: [1]", "odd: [true]"),
        ("odd: !!set {1, 2}", "odd: !!set {true, 2}"),
        ("odd: !!pairs [a: 1]", "odd: !!pairs [a: true]"),
    ],
)
def test_what_python_takes_for_equal_is_a_change_all_the_same(old: str, new: str) -> None:
    """An unknown key that changes is manual, and no change of layout."""
    live: dict[str, Content] = {**LIVE, "agents/guide/agent.yaml": f"{AGENT}{old}\n".encode()}
    proposed: dict[str, Content | None] = {"agents/guide/agent.yaml": f"{AGENT}{new}\n".encode()}
    assert classify(live=live, proposed=proposed, hidden=HIDDEN)[0].category is MANUAL


@pytest.mark.parametrize("odd", [".nan", "!!set {a, b}", "2001-12-14t21:59:43-05:00", "{1: x, a: [y]}"])
def test_an_unknown_value_that_stays_is_no_change(odd: str) -> None:
    live: dict[str, Content] = {**LIVE, "agents/guide/agent.yaml": f"{AGENT}odd: {odd}\n".encode()}
    longer = AGENT.replace("Answers.", "Answers well.")
    proposed: dict[str, Content | None] = {"agents/guide/agent.yaml": f"{longer}odd: {odd}\n".encode()}
    assert classify(live=live, proposed=proposed, hidden=HIDDEN)[0].category is CAPABILITY


def test_adding_web_fetch_is_manual_and_keeping_it_is_not() -> None:
    without = {**LIVE, "agents/guide/agent.yaml": AGENT.replace(", web_fetch", "").encode()}
    proposed = {"agents/guide/agent.yaml": AGENT.encode()}
    assert classify(live=without, proposed=proposed, hidden=HIDDEN)[0].category is MANUAL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Look twice.", "Look three times."),
        ("Reviews.", "Reviews texts."),
        ("name: review\n", "name: reviewer\n"),
    ],
)
def test_prompt_of_skill(old: str, new: str) -> None:
    assert skill_with(old, new) is PROMPT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("disable-model-invocation: false", "disable-model-invocation: true"),
        ("user-invocable: true", "user-invocable: false"),
        ("desc: Runs it.", "desc: Runs all of it."),
        ("- {name: run, desc: Runs it.}", "- {name: run, desc: Runs it., requiresAccess: workspace}"),
        ("license: MIT", "license: MIT # free"),
        ("user-invocable: true\n", "metadata: {halo-user-invocable: true}\n"),
    ],
)
def test_capability_of_skill(old: str, new: str) -> None:
    assert skill_with(old, new) is CAPABILITY


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("command: review", "command: rev"),
        ("command: review\n", ""),
        ("requiresAccess: workspace", "requiresAccess: readonly"),
        ("requiresAccess: workspace\n", ""),
        ("stop, desc: Stops it., requiresAccess: full", "stop, desc: Stops it."),
        ("- {name: run, desc: Runs it.}\n", ""),
        ("verbs:\n", "verbs:\n- {name: more, desc: More., requiresAccess: full}\n"),
        ("name: run", "name: start"),
        ("desc: Runs it.", "desc: Runs it., shell: true"),
        ("license: MIT", "license: GPL"),
        ("license: MIT\n", "license: MIT\nallowed-tools: shell_exec\n"),
        ("license: MIT\n", "license: MIT\nmetadata: {author: Ada}\n"),
        ("license: MIT\n", "license: MIT\nmetadata: {halo-locked: true}\n"),
        ("license: MIT\n", "license: MIT\nmetadata: {halo-command: other}\n"),
        ("command: review\n", "command: review\ncommand: other\n"),
        ("requiresAccess: workspace\n", "requiresAccess: full\nrequiresAccess: workspace\n"),
        ("Reviews.", "Reviews: all."),
        ("description: Reviews.\n", ""),
        ("---\nname", "name"),
        ("---\nLook", "Look"),
    ],
)
def test_manual_of_skill(old: str, new: str) -> None:
    assert skill_with(old, new) is MANUAL


def test_a_key_under_metadata_counts_as_the_key() -> None:
    moved = "---\nname: s\ndescription: d\nmetadata: {halo-command: go}\n---\nx\n"
    live = {"skills/s/SKILL.md": moved.encode()}
    top = "---\nname: s\ndescription: d\ncommand: go\n---\nx\n"
    other = top.replace("go", "stop")
    same = classify(live=live, proposed={"skills/s/SKILL.md": top.encode()}, hidden={})
    changed = classify(live=live, proposed={"skills/s/SKILL.md": other.encode()}, hidden={})
    assert same[0].category is CAPABILITY
    assert changed[0].category is MANUAL


@pytest.mark.parametrize("where", ["description: Reviews.", "Look twice."])
def test_a_skill_with_a_nul_does_not_parse_wherever_it_stands(where: str) -> None:
    change = one("skills/review/SKILL.md", SKILL.replace(where, where + "\0"))
    assert (change.category, change.why) == (MANUAL, "it doesn't parse: it holds a NUL character")


def test_a_skill_that_was_broken_stays_a_persons_business() -> None:
    live: dict[str, Content] = {"skills/s/SKILL.md": b"---\nname: s\ndescription: a: b\n---\nx\n"}
    mended = b"---\nname: s\ndescription: a b\n---\nx\n"
    changes = classify(live=live, proposed={"skills/s/SKILL.md": mended}, hidden={})
    assert changes[0].category is MANUAL


class TestOverrides:
    def test_byte_equal_copies_drop_out(self) -> None:
        proposed = {rel: data for rel, data in HIDDEN.items() if rel.startswith("agents/scout/")}
        assert classify(live=LIVE, proposed=proposed, hidden=HIDDEN) == ()

    def test_a_new_override_is_compared_with_what_it_hides(self) -> None:
        proposed: dict[str, Content | None] = {
            "agents/scout/agent.yaml": HIDDEN["agents/scout/agent.yaml"],
            "agents/scout/AGENT.md": b"Scout better.\n",
        }
        changes = classify(live=LIVE, proposed=proposed, hidden=HIDDEN)
        assert [(change.rel, change.category) for change in changes] == [("agents/scout/AGENT.md", PROMPT)]

    def test_an_incomplete_override_is_a_deletion(self) -> None:
        changes = classify(live=LIVE, proposed={"prompts/root/a.md": b"A!\n"}, hidden=HIDDEN)
        assert [(change.rel, change.category) for change in changes] == [
            ("prompts/root/a.md", PROMPT),
            ("prompts/root/b.md", MANUAL),
        ]

    @pytest.mark.parametrize(
        ("rel", "text", "category"),
        [
            ("skills/plan/SKILL.md", "---\nname: plan\ndescription: Plans.\n---\nPlan.\n", MANUAL),
            ("agents/scout/agent.yaml", "name: Scout\ntools: [grep]\n", MANUAL),
            ("agents/scout/AGENT.md", "Scout.\n", MANUAL),
            ("prompts/root/a.md", "A.\n", PROMPT),
        ],
    )
    def test_a_folder_without_files_hides_the_global_one(
        self, rel: str, text: str, category: Category
    ) -> None:
        """The very text of the global file: what was switched off comes back, which is no copy."""
        live = {**LIVE, unit(rel): NoFile.FOLDER}
        [change] = classify(live=live, proposed={rel: text.encode()}, hidden=HIDDEN)
        assert (change.rel, change.category) == (rel, category)

    def test_a_new_folder_that_hides_none_but_an_empty_one_deletes_nothing(self) -> None:
        hidden = {**HIDDEN, "skills/off": NoFile.FOLDER}
        proposed: dict[str, Content | None] = {"skills/off/SKILL.md": SKILL.encode()}
        [change] = classify(live=LIVE, proposed=proposed, hidden=hidden)
        assert (change.rel, change.category, change.why) == ("skills/off/SKILL.md", MANUAL, "a new skill")

    def test_an_internal_agent_of_the_global_folder_is_manual(self) -> None:
        proposed: dict[str, Content | None] = {
            "agents/__score__/agent.yaml": HIDDEN["agents/__score__/agent.yaml"],
            "agents/__score__/AGENT.md": b"Always 100.\n",
        }
        changes = classify(live=LIVE, proposed=proposed, hidden=HIDDEN)
        assert [change.category for change in changes] == [MANUAL]

    def test_the_same_text_is_no_change(self) -> None:
        assert classify(live=LIVE, proposed={"USER.md": b"Ada.\n"}, hidden=HIDDEN) == ()


MANUAL_AGENT_KEYS = ("priority", "team", "internal", "name", "halo-locked", "anything", "permissions")
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3)
)
PATHS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([*LIVE, *HIDDEN]),
    st.builds(
        "/".join, st.lists(st.sampled_from(["agents", "skills", "guide", "SKILL.md", "x"]), max_size=4)
    ),
)
CONTENTS = st.one_of(
    st.none(), st.just(NoFile.SYMLINK), st.binary(max_size=60), st.sampled_from(list(LIVE.values()))
)


def passes(proposed: dict[str, Content | None]) -> bool:
    """At the highest level, with perfect evidence."""
    changes = classify(live=LIVE, proposed=proposed, hidden=HIDDEN)
    given = GateInput(source_access="full", level="L3", threshold=0, changes=changes, score=perfect())
    return decide(given).passed


class TestNoInputMakesAManualChangePass:
    """Invariant 8."""

    @given(key=st.sampled_from(MANUAL_AGENT_KEYS), value=SCALARS, harmless=st.text(max_size=20))
    def test_agent_yaml(self, key: str, value: object, harmless: str) -> None:
        import yaml

        before = yaml.safe_load(AGENT)
        after = {**before, "system_prompt": harmless, key: value}
        unchanged = key in before and type(value) is type(before[key]) and value == before[key]
        text = yaml.safe_dump(after, allow_unicode=True).encode()
        assert unchanged or not passes({"agents/guide/agent.yaml": text})

    @given(
        name=st.text(min_size=1, max_size=20).filter(
            lambda name: name not in ("file_read", "grep", "web_fetch")
        )
    )
    def test_tools_that_nobody_knows(self, name: str) -> None:
        import yaml

        from evolution.agent_changes import KNOWN_TOOLS

        after = yaml.safe_load(AGENT)
        after["tools"].append(name)
        text = yaml.safe_dump(after, allow_unicode=True).encode()
        assert name in KNOWN_TOOLS or not passes({"agents/guide/agent.yaml": text})

    @given(
        proposed=st.dictionaries(PATHS, CONTENTS, max_size=4),
        manual=st.sampled_from(["USER.md", "x", "agents/n/AGENT.md"]),
    )
    def test_company_never_helps(self, proposed: dict[str, Content | None], manual: str) -> None:
        assert not passes({**proposed, manual: b"something new"})

    @given(path=PATHS, content=CONTENTS)
    def test_only_the_paths_of_the_table_ever_pass(self, path: str, content: Content | None) -> None:
        import re

        allowed = re.compile(
            r"(INSTRUCTIONS|INDEX)\.md|prompts/(bootstrap|all|root)/[^/]+\.md"
            r"|agents/(guide|scout)/(AGENT\.md|agent\.yaml)|skills/(review|plan)/SKILL\.md"
        )
        if passes({path: content}):
            assert allowed.fullmatch(path)
            assert isinstance(content, bytes)

    @given(data=st.binary(max_size=200))
    def test_any_bytes_are_sorted_without_an_error(self, data: bytes) -> None:
        for rel in ("agents/guide/agent.yaml", "skills/review/SKILL.md"):
            classify(live=LIVE, proposed={rel: data}, hidden=HIDDEN)
            classify(live={**LIVE, rel: data}, proposed={rel: b"name: x\n"}, hidden=HIDDEN)
