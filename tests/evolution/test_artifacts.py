"""Files of a run's folder: what is written is read back, and what nobody may write is refused with its reason."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from core import hashes
from evolution.artifacts import frozen
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import (
    PatchInvalid,
    larger_observation,
    parse_patch,
    read_observation,
    read_patch,
)
from evolution.artifacts.score import (
    ScoreInvalid,
    parse_score,
    read_score,
    read_summary,
    summarise,
    write_summary,
)
from evolution.artifacts.verdict import read_verdict, write_verdict
from evolution.changes import Category, Change
from evolution.conversation import answer_after, find_user_message, tool_flow
from evolution.gates import GateInput, decide
from tests.evolution.phase_world import (
    ANSWER,
    QUESTION,
    agent,
    conversation,
    make_world,
    patch_text,
    score_text,
    user,
    write,
)
from tests.evolution.scores import perfect, score

BOMB = (
    "---\na0: &a0 [x, x]\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    + "target: *a39\n---\n"
)


class TestPatch:
    def test_reads_target_scenario_and_body(self) -> None:
        patch = parse_patch(patch_text(target=".halo/agents/guide/AGENT.md"))
        assert patch.target == "agents/guide/AGENT.md"
        assert patch.scenario.original_message == QUESTION
        assert patch.body.startswith("## What")

    def test_windows_line_ends_and_a_byte_order_mark_are_read(self) -> None:
        assert parse_patch("\ufeff" + patch_text().replace("\n", "\r\n")).target == "INSTRUCTIONS.md"

    def test_an_old_patch_has_one_message_for_both(self) -> None:
        old = "---\ntarget: INDEX.md\ntestScenario: {agentId: a, message: Hi there}\n---\nx\n"
        scenario = parse_patch(old).scenario
        assert (scenario.original_message, scenario.test_message) == ("Hi there", "Hi there")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("no frontmatter", "no frontmatter"),
            ("---\n: : :\n---\n", "not YAML"),
            ("---\n- a\n---\n", "not a list of keys"),
            ("---\ntestScenario: {}\n---\n", "target is missing"),
            ("---\ntarget: 5\n---\n", "target is 5"),
            ("---\ntarget: ../x\n---\n", "climbs out"),
            ('---\ntarget: "INDEX.md\\0"\n---\n', "NUL"),
            ('---\ntarget: "\\ud800"\n---\n', "not YAML"),
            ("---\ntarget: INDEX.md\ntarget: USER.md\n---\n", "twice"),
            ("---\ntarget: 0x" + "f" * 10_000 + "\n---\n", "not YAML"),
            ("---\ntarget: " + "[" * 100_000 + "\n---\n", "not YAML"),
            (BOMB, "not YAML"),
            ("---\ntarget: /etc/passwd\n---\n", "absolute"),
            ("---\ntarget: INDEX.md\n---\n", "testScenario is missing"),
            (patch_text(agent_id="../a"), "no agent's id"),
            (patch_text(original="  "), "originalMessage"),
            ("---\ntarget: INDEX.md\ntestScenario: {agentId: a, testMessage: x}\n---\n", "originalMessage"),
        ],
    )
    def test_what_is_wrong_is_said(self, text: str, words: str) -> None:
        with pytest.raises(PatchInvalid, match=words):
            parse_patch(text)

    def test_bytes_that_are_no_text_are_refused(self, tmp_path: Path) -> None:
        write(tmp_path / "patch.md", b"---\n\xff\n---\n")
        with pytest.raises(PatchInvalid, match="UTF-8"):
            read_patch(tmp_path / "patch.md")


class TestLargerObservation:
    def test_is_lifted_up_to_the_next_section_and_cut(self) -> None:
        text = "## What\nx\n\n## Larger observation\n" + "o" * 3000 + "\n\n## Why\ny\n"
        assert larger_observation(text) == "o" * 2000
        assert larger_observation("## Larger observation\nfirst\n### Detail\nmore\n## Why\n") == (
            "first\n### Detail\nmore"
        )

    def test_is_empty_without_its_heading(self) -> None:
        assert larger_observation("a larger observation\n### Larger observation\nx") == ""

    def test_is_found_in_either_file(self, tmp_path: Path) -> None:
        files = AttemptFiles(tmp_path)
        assert read_observation(tmp_path) == ""
        write(files.skip, "Nothing.\n## Larger observation\nThe docs are old.\n")
        assert read_observation(tmp_path) == "The docs are old."


class TestScore:
    def test_average_is_ours_and_unrounded(self) -> None:
        found = parse_score(score_text(lint=100, behavior=90, scope=81, avg=5).encode())
        assert found.avg == pytest.approx(271 / 3)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("{", "not JSON"),
            ("[]", "not a JSON object"),
            (score_text(lint=101), "lint is 101"),
            (score_text(behavior=-1), "behavior is -1"),
            (score_text(scope=79.5), "scope is 79.5"),
            (score_text(lint=True), "lint is True"),
            (score_text(lint="100"), "lint is '100'"),
            (score_text(lint=None), "lint is missing"),
            ('{"lint": NaN}', "not JSON"),
            (score_text(confidence="sure"), "confidence is 'sure'"),
            (score_text(checks={"probe": "good"}), "probe is 'good'"),
            (score_text(notes=5), "notes is 5"),
            (json.dumps({"lint": 1, "behavior": 1, "scope": 1, "confidence": "low"}), "checks is missing"),
            ("[" * 100_000, "not JSON"),
            ('{"lint": 1e999}', "lint is inf"),
            ('{"lint": ' + "9" * 5_000 + "}", "not JSON"),
            (score_text().replace('"lint"', '"lint": 0, "lint"'), "twice"),
        ],
    )
    def test_what_is_wrong_is_said(self, text: str, words: str) -> None:
        with pytest.raises(ScoreInvalid, match=words):
            parse_score(text.encode())

    def test_a_missing_file_and_a_huge_one_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ScoreInvalid, match="not written"):
            read_score(tmp_path / "score.1.json")
        write(tmp_path / "score.1.json", b" " * 300_000)
        with pytest.raises(ScoreInvalid, match="at most"):
            read_score(tmp_path / "score.1.json")

    def test_samples_show_medians_the_worst_words_and_the_spread(self) -> None:
        summary = summarise(
            [
                score(behavior=90),
                score(behavior=60, confidence="medium", checks={"probe": "soft"}),
                score(behavior=75, scope=40, checks={"usedInDryRun": "no"}),
            ]
        )
        assert (summary.shown.lint, summary.shown.behavior, summary.shown.scope) == (100, 75, 100)
        assert summary.shown.confidence == summary.lowest.confidence == "medium"
        assert (summary.shown.checks["probe"], summary.shown.checks["usedInDryRun"]) == ("soft", "no")
        assert (summary.lowest.behavior, summary.lowest.scope) == (60, 40)
        assert summary.lowest.avg == pytest.approx(215 / 3)
        assert summary.spread == pytest.approx(290 / 3 - 215 / 3)

    def test_an_unmoved_answer_caps_behavior_before_the_average(self) -> None:
        summary = summarise([score(behavior=95)], capped=True)
        assert summary.shown.behavior == 50
        assert summary.shown.avg == pytest.approx(250 / 3)
        assert summarise([score(behavior=30)], capped=True).shown.behavior == 30

    def test_a_summary_is_read_back_as_written(self, tmp_path: Path) -> None:
        summary = summarise([score(behavior=90), score(behavior=91)])
        write_summary(tmp_path / "score.json", summary)
        assert read_summary(tmp_path / "score.json") == summary
        write(tmp_path / "score.json", "{}")
        with pytest.raises(ScoreInvalid):
            read_summary(tmp_path / "score.json")


def test_a_verdict_is_written_with_its_observation(tmp_path: Path) -> None:
    changes = [Change("INDEX.md", Category.PROMPT, "text")]
    verdict = decide(GateInput("full", "L0", 80, changes, perfect()))
    assert read_verdict(tmp_path) is None
    write_verdict(tmp_path, verdict, "Docs are old.")
    found = read_verdict(tmp_path)
    assert found is not None
    assert (found["reason"], found["would_pass_at"], found["category"]) == ("level", "L2", "prompt")
    assert found["changes"] == [{"rel": "INDEX.md", "category": "prompt", "why": "text"}]
    assert found["observation"] == "Docs are old."


class TestFrozen:
    def test_everything_is_read_back_and_hashed(self, tmp_path: Path) -> None:
        world = make_world(tmp_path)
        assert frozen.read_messages(world.frozen) == conversation()
        assert frozen.read_meta(world.frozen).hint == "numbers first"
        contents = {file.rel: file.content for file in frozen.read_context(world.frozen).files}
        assert contents["INSTRUCTIONS.md"] == "Answer well.\n"
        assert contents["agents/guide/AGENT.md"] == "You are the guide.\n"
        inputs = frozen.read_inputs(world.frozen)
        assert set(inputs) == {"source-snapshot.json", "tool-flow.md", "meta.json", "evo-context.json"}
        assert all(hashes.of_file(world.frozen / name) == known for name, known in inputs.items())
        assert frozen.changed_inputs(world.frozen) == []

    def test_a_change_is_noticed(self, tmp_path: Path) -> None:
        world = make_world(tmp_path)
        write(world.frozen / "meta.json", "{}")
        (world.frozen / "tool-flow.md").unlink()
        assert frozen.changed_inputs(world.frozen) == ["tool-flow.md", "meta.json"]
        with pytest.raises(frozen.FrozenUnreadable, match=r"meta\.json"):
            frozen.read_meta(world.frozen)

    def test_images_become_files(self, tmp_path: Path) -> None:
        picture = b"\x89PNG\xfb\xff\xfe"
        data = base64.urlsafe_b64encode(picture).decode()
        content: list[Any] = [{"kind": "binary", "media_type": "image/png", "data": data}, "What is this?"]
        messages = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": content}]}]
        world = make_world(tmp_path)
        world.freeze_again(messages)
        entry = json.loads((world.frozen / "images/manifest.json").read_text())[0]
        assert (world.frozen / entry["file"]).read_bytes() == picture
        assert (entry["mediaType"], entry["message"], entry["bytes"]) == ("image/png", 1, len(picture))
        piece = frozen.read_messages(world.frozen)[0]["parts"][0]["content"][0]
        assert piece == {"kind": "binary", "media_type": "image/png", "file": entry["file"]}
        assert messages[0]["parts"][0]["content"][0]["data"] == data
        assert {"images/1.png", "images/manifest.json"} <= set(frozen.read_inputs(world.frozen))

    def test_odd_characters_survive_or_are_replaced(self, tmp_path: Path) -> None:
        world = make_world(tmp_path)
        world.freeze_again([user("line\u2028separator \x00 \ud800 \u202e"), agent("ok")])
        assert frozen.read_messages(world.frozen)[0]["parts"][0]["content"].startswith("line\u2028separator")


class TestConversation:
    def test_the_real_answer_is_the_last_text_before_the_next_question(self) -> None:
        messages = [*conversation(), user("And now?"), agent("Later.")]
        position = find_user_message(messages, f"  {QUESTION.replace(' ', chr(10))} ")
        assert position == 2
        assert answer_after(messages, position) == ANSWER

    def test_the_last_of_several_matches_counts(self) -> None:
        messages = [user("Why?"), agent("One."), user("[2026-01-31T09:30:00.123Z] Why?"), agent("Two.")]
        assert find_user_message(messages, "Why?") == 2
        assert find_user_message(messages, "[2026-01-31T09:30:00.123Z] Why?") == 2
        assert find_user_message(messages, "What?") is None

    def test_one_of_several_merged_messages_matches(self) -> None:
        merged = user(
            "[2026-01-31T09:30:00.123Z] First thing\n[2026-01-31T09:30:01.123Z] (from: session abc) Second\nthing"
        )
        assert find_user_message([merged], "Second thing") == 0
        assert find_user_message([merged], "First thing") == 0
        assert find_user_message([merged], "First thing Second thing") == 0
        assert find_user_message([merged], "Second") is None

    def test_a_turn_without_an_answer_says_so(self) -> None:
        assert "without an answer" in answer_after([user("Why?")], 0)

    def test_a_tool_result_is_no_user_message(self) -> None:
        assert find_user_message(conversation(), "x" * 900) is None

    def test_the_flow_clips_results_and_keeps_words(self) -> None:
        flow = tool_flow(conversation())
        assert QUESTION in flow
        assert ANSWER in flow
        assert "2026-01-31" not in flow
        assert "Call of grep" in flow
        assert "x" * 401 not in flow
        assert "500 more characters" in flow
