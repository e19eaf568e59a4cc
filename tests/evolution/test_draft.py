"""Phase A: what the drafter is given, and every check of its draft in order, each with its reason."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agents.views import View
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Draft, DryRunFailure
from evolution.briefs.parts import EarlierDraft
from evolution.errors import PhaseFailed, PhaseSkipped
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from evolution.phases.draft import DraftInput, draft, fix
from tests.evolution.phase_world import (
    ANSWER,
    QUESTION,
    World,
    agent,
    crashes,
    drafts,
    make_world,
    patch_text,
    user,
    write,
)
from workspaces.overrides import MAX_PROMPT_BYTES

NEW = {"INSTRUCTIONS.md": "Answer well. Numbers first.\n"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def ask(
    world: World, files: dict[str, str | bytes], patch: str | None = None, *, given: DraftInput | None = None
) -> Draft:
    ctx = world.run()
    world.children = [drafts(ctx, files, patch)]
    return draft(ctx, given or DraftInput())


def refused(world: World, files: dict[str, str | bytes], patch: str | None = None, **given: object) -> str:
    with pytest.raises(PhaseFailed) as caught:
        ask(world, files, patch, given=DraftInput(**given))  # type: ignore[arg-type]
    assert not isinstance(caught.value, PhaseSkipped)
    return caught.value.reason


class TestAsking:
    def test_a_good_draft_is_taken_and_the_real_answer_written_down(self, world: World) -> None:
        found = ask(world, NEW)
        assert found.patch.target == "INSTRUCTIONS.md"
        assert found.changed == ("INSTRUCTIONS.md",)
        assert not found.has_observation
        files = AttemptFiles(world.frozen / "attempts/1")
        assert files.baseline.read_text() == ANSWER + "\n"

    def test_the_drafter_gets_no_shell_and_writes_only_its_artifacts_and_the_sandbox(
        self, world: World
    ) -> None:
        ask(world, NEW)
        (spec,) = world.asked
        files = AttemptFiles(world.frozen / "attempts/1")
        assert spec.agent_id == "__evo_agent__"
        assert spec.view.shell == "none"
        assert spec.tools is not None
        assert not {"shell_exec", "web_fetch", "start_session"} & set(spec.tools)
        may = {path for path in candidates(world, files) if writable(spec.view, path)}
        assert may == {files.patch, files.skip, files.sandbox / "INSTRUCTIONS.md"}

    def test_the_brief_holds_hint_locks_and_what_was_not_kept_before(self, world: World) -> None:
        earlier = EarlierDraft("01old", "rejected", "We like it long.", "INSTRUCTIONS.md", "old patch")
        ask(world, NEW, given=DraftInput(locked=("USER.md",), earlier=(earlier,)))
        brief = world.asked[0].brief
        for part in ("numbers first", "USER.md", "We like it long.", "en-US", str(world.frozen)):
            assert part in brief

    def test_the_brief_holds_the_hint_of_now_not_the_frozen_one(self, world: World) -> None:
        ctx = replace(world.run(), hint="name the source")
        world.children = [drafts(ctx, NEW, None)]
        draft(ctx, DraftInput())
        brief = world.asked[0].brief
        assert "name the source" in brief
        assert "numbers first" not in brief

    def test_the_brief_says_where_the_live_surface_has_moved_on(self, world: World) -> None:
        world.live("INSTRUCTIONS.md", "Moved on.\n")
        ask(world, NEW)
        assert "These files have changed since" in world.asked[0].brief


def candidates(world: World, files: AttemptFiles) -> list[Path]:
    return [
        files.patch,
        files.skip,
        files.baseline,
        files.score,
        files.base_manifest,
        files.base / "INSTRUCTIONS.md",
        files.sandbox / "INSTRUCTIONS.md",
        files.folder / "sandbox/AGENTS.md",
        world.frozen / "meta.json",
        world.halo / "INSTRUCTIONS.md",
        world.global_folder / "INSTRUCTIONS.md",
    ]


def writable(view: View, path: Path) -> bool:
    mount = view.mount_of(path)
    return mount is not None and mount.writable


class TestChecks:
    def test_exit_code(self, world: World) -> None:
        ctx = world.run()
        world.children = [crashes("provider unreachable")]
        with pytest.raises(PhaseFailed, match="exit code 1: provider unreachable"):
            draft(ctx, DraftInput())

    @pytest.mark.parametrize(
        ("ended_by", "words"), [("timeout", "out of time"), ("silence", "no sign of life")]
    )
    def test_an_agent_that_was_ended(self, world: World, ended_by: str, words: str) -> None:
        ctx = world.run()
        world.children = [lambda spec: ChildResult(exit_code=-9, text="", ended_by=ended_by)]  # type: ignore[arg-type]
        with pytest.raises(PhaseFailed, match=words):
            draft(ctx, DraftInput())

    def test_neither_file(self, world: World) -> None:
        ctx = world.run()
        world.children = [lambda spec: ChildResult(exit_code=0, text="done", ended_by="exit")]
        with pytest.raises(PhaseFailed, match=r"neither patch\.md nor"):
            draft(ctx, DraftInput())

    @pytest.mark.parametrize(
        ("files", "patch", "words"),
        [
            (NEW, "no frontmatter", "patch.md can't be used: it has no frontmatter"),
            (NEW, patch_text(target="docs/battery.md"), "outside the published surface"),
            (NEW, patch_text(target="settings.yaml"), "outside the published surface"),
            (NEW, patch_text(target="../x"), "climbs out"),
            ({}, patch_text(), "is the same in the sandbox as before"),
            ({}, patch_text(target="INDEX.md"), "no such file was written"),
            ({"INDEX.md": "x\n"}, patch_text(), "is the same in the sandbox as before"),
            ({**NEW, "docs/battery.md": "Two hours.\n"}, None, "docs/battery.md was changed"),
            ({**NEW, "settings.yaml": "a: 1\n"}, None, "settings.yaml was changed"),
            ({**NEW, "../AGENTS.md": "a\n"}, None, "AGENTS.md was changed"),
            ({"INSTRUCTIONS.md": b"\xff\n"}, None, "not UTF-8"),
            ({"INSTRUCTIONS.md": b"a\0b\n"}, None, "NUL"),
            ({"INSTRUCTIONS.md": "x" * (MAX_PROMPT_BYTES + 1)}, None, "so sessions would leave it out"),
            (
                {**NEW, "prompts/all/a\u2028b.md": "x\n"},
                None,
                "a\\u2028b.md can't be published: its name holds",
            ),
            ({**NEW, "prompts/all/\udcff.md": "x\n"}, None, "its name is not UTF-8 text"),
            (
                {"agents/guide/agent.yaml": "name: [\n"},
                patch_text(target="agents/guide/agent.yaml"),
                "agents/guide/agent.yaml can't be published",
            ),
            (
                {"skills/s/SKILL.md": "---\nname: s\ndescription: a: b\n---\n"},
                patch_text(target="skills/s/SKILL.md"),
                "skills/s/SKILL.md can't be published",
            ),
            (NEW, patch_text(original="Nobody said this"), "originalMessage is no message"),
            (NEW, patch_text(original=ANSWER), "originalMessage is no message"),
        ],
    )
    def test_each_failure_has_its_reason(
        self, world: World, files: dict[str, str | bytes], patch: str | None, words: str
    ) -> None:
        assert words in refused(world, files, patch)

    def test_a_symlink_in_the_sandbox(self, world: World) -> None:
        ctx = world.run()
        inner = drafts(ctx, dict(NEW))

        def child(spec: ChildSpec) -> ChildResult:
            (AttemptFiles(ctx.folder).sandbox / "agents/guide/more.md").symlink_to("/etc/passwd")
            return inner(spec)

        world.children = [child]
        with pytest.raises(PhaseFailed, match=r"^symlink:agents/guide/more\.md$"):
            draft(ctx, DraftInput())

    def test_a_target_that_was_taken_away(self, world: World) -> None:
        ctx = world.run()

        def child(spec: ChildSpec) -> ChildResult:
            (AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md").unlink()
            write(AttemptFiles(ctx.folder).patch, patch_text())
            return ChildResult(exit_code=0, text="", ended_by="exit")

        world.children = [child]
        with pytest.raises(PhaseFailed, match="never removed"):
            draft(ctx, DraftInput())

    def test_an_old_answer_is_kept_apart_from_a_later_one(self, world: World) -> None:
        world.freeze_again(
            [user("Why?"), agent("One."), user("Why?"), agent("Two."), user("Ok?"), agent("Ok.")]
        )
        ask(world, dict(NEW), patch_text(original="Why?"))
        assert AttemptFiles(world.frozen / "attempts/1").baseline.read_text() == "Two.\n"

    def test_a_new_override_is_completed(self, world: World) -> None:
        found = ask(
            world, {"agents/scout/AGENT.md": "Scout better.\n"}, patch_text(target="agents/scout/AGENT.md")
        )
        assert found.changed == ("agents/scout/AGENT.md",)
        files = AttemptFiles(world.frozen / "attempts/1")
        assert (files.sandbox / "agents/scout/agent.yaml").is_file()

    def test_a_copy_of_a_global_file_is_no_change(self, world: World) -> None:
        copy = {"agents/scout/AGENT.md": "You are the scout.\n"}
        assert "the same in the sandbox" in refused(
            world, dict(copy), patch_text(target="agents/scout/AGENT.md")
        )


class TestSkip:
    def skip(self, world: World, text: str, *, with_patch: bool = False, skip_is_older: bool = False) -> None:
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        inner = drafts(ctx, dict(NEW))

        def child(spec: ChildSpec) -> ChildResult:
            if with_patch:
                inner(spec)
            write(files.skip, text)
            if with_patch:
                moment = files.patch.stat().st_mtime_ns + (-1_000 if skip_is_older else 1_000)
                os.utime(files.skip, ns=(moment, moment))
            return ChildResult(exit_code=0, text="", ended_by="exit")

        world.children = [child]
        draft(ctx, DraftInput())

    def test_the_reason_is_what_was_written(self, world: World) -> None:
        with pytest.raises(PhaseSkipped) as caught:
            self.skip(world, "The answer was right.\n\n## Larger observation\nDocs are old.\n")
        assert caught.value.reason == "The answer was right."

    def test_without_a_reason(self, world: World) -> None:
        with pytest.raises(PhaseSkipped, match="gave no reason"):
            self.skip(world, " \n")

    def test_whichever_was_written_last_counts(self, world: World) -> None:
        with pytest.raises(PhaseSkipped):
            self.skip(world, "On second thought, no.", with_patch=True)

    def test_an_older_skip_does_not_count(self, world: World) -> None:
        self.skip(world, "First I thought no.", with_patch=True, skip_is_older=True)


class TestLocks:
    @pytest.mark.parametrize(
        "pattern",
        ["INSTRUCTIONS.md", ".halo/INSTRUCTIONS.md", "*.md", "*"],
    )
    def test_a_pattern_locks_the_target(self, world: World, pattern: str) -> None:
        assert refused(world, dict(NEW), locked=(pattern,)) == "locked:INSTRUCTIONS.md"

    @pytest.mark.parametrize(
        "pattern", ["agents", "agents/", "agents/*", "agents/guide", "agents/g*/AGENT.md"]
    )
    def test_a_pattern_locks_a_folder(self, world: World, pattern: str) -> None:
        files = {"agents/guide/AGENT.md": "Other.\n"}
        reason = refused(world, dict(files), patch_text(target="agents/guide/AGENT.md"), locked=(pattern,))
        assert reason == "locked:agents/guide/AGENT.md"

    def test_a_pattern_for_something_else_locks_nothing(self, world: World) -> None:
        assert ask(world, dict(NEW), given=DraftInput(locked=("agents", "USER.md", "INSTR"))).changed

    def test_a_second_file_is_held_to_the_locks_as_well(self, world: World) -> None:
        files = {**NEW, "agents/guide/AGENT.md": "Other.\n"}
        assert refused(world, dict(files), locked=("agents",)) == "locked:agents/guide/AGENT.md"

    def test_halo_locked_in_agent_yaml_locks_the_agent(self, world: World) -> None:
        world.live("agents/guide/agent.yaml", "name: Guide\nhalo-locked: true\n")
        files = {"agents/guide/AGENT.md": "Other.\n"}
        reason = refused(world, dict(files), patch_text(target="agents/guide/AGENT.md"))
        assert reason == "locked:agents/guide/AGENT.md"

    @pytest.mark.parametrize("value", ["true", '"true"', "1", "maybe"])
    def test_halo_locked_in_a_skills_metadata(self, world: World, value: str) -> None:
        skill = f"---\nname: s\ndescription: d\nmetadata: {{halo-locked: {value}}}\n---\nOld.\n"
        world.live("skills/s/SKILL.md", skill)
        files = {"skills/s/SKILL.md": skill.replace("Old", "New")}
        assert (
            refused(world, dict(files), patch_text(target="skills/s/SKILL.md")) == "locked:skills/s/SKILL.md"
        )

    def test_a_lock_of_a_global_agent_holds_for_its_override(self, world: World) -> None:
        world.shared("agents/scout/agent.yaml", "name: Scout\nhalo-locked: true\n")
        files = {"agents/scout/AGENT.md": "Other.\n", "agents/scout/agent.yaml": "name: Scout\n"}
        reason = refused(world, dict(files), patch_text(target="agents/scout/AGENT.md"))
        assert reason == "locked:agents/scout/AGENT.md"

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("name: Guide\nhalo-locked: true\n", "name: Guide\n"),
            ("name: Guide\nhalo-locked: true\n", "name: Guide\nhalo-locked: false\n"),
            ("name: Guide\n", "name: Guide\nhalo-locked: true\n"),
            ("name: [ # halo-locked: true\n", "name: Guide\n"),
        ],
    )
    def test_a_lock_itself_is_a_lock(self, world: World, before: str, after: str) -> None:
        world.live("agents/guide/agent.yaml", before)
        target = "agents/guide/agent.yaml"
        assert refused(world, {target: after}, patch_text(target=target)) == f"locked:{target}"

    def test_halo_locked_false_locks_nothing(self, world: World) -> None:
        world.live("agents/guide/agent.yaml", "name: Guide\nhalo-locked: false\n")
        assert ask(world, {"agents/guide/AGENT.md": "Other.\n"}, patch_text(target="agents/guide/AGENT.md"))


class TestObservation:
    def test_is_lifted_from_the_patch(self, world: World) -> None:
        found = ask(world, dict(NEW), patch_text(body="## What\nx\n## Larger observation\n" + "o" * 2500))
        assert found.observation == "o" * 2000
        assert found.has_observation

    def test_one_in_an_older_skip_counts_as_well(self, world: World) -> None:
        ctx = world.run()
        skip = AttemptFiles(ctx.folder).skip
        write(skip, "Nothing to do.\n## Larger observation\nThe docs are old.\n")
        os.utime(skip, (1, 1))
        world.children = [drafts(ctx, dict(NEW))]
        assert draft(ctx, DraftInput()).observation == "The docs are old."


class TestFix:
    def first(self, world: World) -> tuple[PhaseContext, Draft, DryRunFailure]:
        ctx = world.run()
        world.children = [drafts(ctx, dict(NEW))]
        found = draft(ctx, DraftInput())
        log = AttemptFiles(ctx.folder).dry_run_failure(1)
        write(log, "boom")
        return ctx, found, DryRunFailure("The agent did not answer.", log)

    def test_corrects_in_place_and_is_checked_again(self, world: World) -> None:
        ctx, found, failure = self.first(world)
        world.children = [drafts(ctx, {"INSTRUCTIONS.md": "Corrected.\n"})]
        assert fix(ctx, DraftInput(), found, failure).changed == ("INSTRUCTIONS.md",)
        assert "The agent did not answer." in world.asked[-1].brief
        assert world.asked[-1].session_folder != world.asked[0].session_folder

    def test_must_meet_every_check(self, world: World) -> None:
        ctx, found, failure = self.first(world)
        world.children = [drafts(ctx, {"docs/battery.md": "x"})]
        with pytest.raises(PhaseFailed, match=r"docs/battery\.md was changed"):
            fix(ctx, DraftInput(), found, failure)

    def test_may_give_up(self, world: World) -> None:
        ctx, found, failure = self.first(world)
        files = AttemptFiles(ctx.folder)

        def child(spec: ChildSpec) -> ChildResult:
            write(files.skip, "It can't be helped.")
            moment = files.patch.stat().st_mtime_ns + 1_000
            os.utime(files.skip, ns=(moment, moment))
            return ChildResult(exit_code=0, text="", ended_by="exit")

        world.children = [child]
        with pytest.raises(PhaseSkipped, match="can't be helped"):
            fix(ctx, DraftInput(), found, failure)


def test_the_question_may_be_quoted_with_its_stamp_and_other_white_space(world: World) -> None:
    original = f"[2026-01-31T09:31:00.123Z] {QUESTION}".replace(" last", " \n\t last")
    assert ask(world, dict(NEW), patch_text(original=original)).changed
