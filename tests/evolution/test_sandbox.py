"""The copy a draft works on: exactly the whitelist, and the proof that nothing else was touched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core import hashes
from core.bounded_read import UnreadableFileError
from evolution import sandbox, surface_folder
from evolution.artifacts.files import AttemptFiles
from evolution.changes import Category
from evolution.errors import PhaseFailed
from tests.evolution.phase_world import World, make_world, patch_text, write
from workspaces import publish_lock
from workspaces.overrides import PLATFORM_FOLDER


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


class TestPrepare:
    def test_copies_exactly_the_whitelist(self, world: World) -> None:
        world.live("settings.yaml", "a: 1\n")
        world.live("memory/note.md", "private\n")
        world.live("sessions/guide/s.raw.jsonl", "{}\n")
        world.live(".hidden", "x")
        ctx = world.run()
        expected = {
            ".halo/INSTRUCTIONS.md",
            ".halo/agents/guide/agent.yaml",
            ".halo/agents/guide/AGENT.md",
            ".halo/docs/battery.md",
        }
        assert names(ctx.base) == names(ctx.sandbox) == expected
        manifest = json.loads(AttemptFiles(ctx.folder).base_manifest.read_text())
        assert manifest == {
            rel.removeprefix(".halo/"): hashes.of_file(ctx.base / rel) for rel in sorted(expected)
        }

    def test_copies_project_knowledge_for_reading(self, world: World) -> None:
        world.freeze_again(working_dir="app/web")
        write(world.workspace / "AGENTS.md", "Project.\n")
        write(world.workspace / ".agents/skills/lint/SKILL.md", "x\n")
        write(world.workspace / "app/.halo/INSTRUCTIONS.md", "App.\n")
        write(world.workspace / "app/web/.halo/INSTRUCTIONS.md", "Web.\n")
        write(world.workspace / "other/.halo/INSTRUCTIONS.md", "Other.\n")
        ctx = world.run()
        beside = {rel for rel in names(ctx.sandbox) if not rel.startswith(".halo/")}
        assert beside == {
            "AGENTS.md",
            ".agents/skills/lint/SKILL.md",
            "app/.halo/INSTRUCTIONS.md",
            "app/web/.halo/INSTRUCTIONS.md",
        }
        assert "AGENTS.md" not in json.loads(AttemptFiles(ctx.folder).base_manifest.read_text())

    def test_a_link_beside_the_surface_is_not_followed(self, world: World, tmp_path: Path) -> None:
        write(tmp_path / "secret", "s3cret\n")
        (world.workspace / "AGENTS.md").symlink_to(tmp_path / "secret")
        ctx = world.run()
        assert "AGENTS.md" not in names(ctx.sandbox)

    @pytest.mark.parametrize(
        "rel", ["INDEX.md", "skills", "agents/guide/extra", "docs/link.md", "prompts/all"]
    )
    @pytest.mark.parametrize("kind", ["file", "folder", "dangling"])
    def test_a_symlink_in_the_surface_ends_the_run(
        self, world: World, tmp_path: Path, rel: str, kind: str
    ) -> None:
        write(tmp_path / "outside/file", "x")
        link = world.halo / rel
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to({"file": tmp_path / "outside/file", "folder": tmp_path / "outside"}.get(kind, "gone"))
        with pytest.raises(PhaseFailed, match=f"^symlink:{rel}$"):
            world.run()

    def test_a_pipe_in_the_surface_is_never_opened(self, world: World) -> None:
        os.mkfifo(world.halo / "docs/pipe")
        with pytest.raises(PhaseFailed, match="docs/pipe"):
            world.run()

    def test_a_file_larger_than_sessions_read_is_copied_all_the_same(self, world: World) -> None:
        size = publish_lock.MAX_FILE_BYTES + 1
        world.live("docs/film.bin", bytes(size))
        ctx = world.run()
        assert (ctx.sandbox / ".halo/docs/film.bin").stat().st_size == size
        write(AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md", "Numbers first.\n")
        assert [change.rel for change in sandbox.classified(ctx)] == ["INSTRUCTIONS.md"]

    def test_a_file_that_cannot_be_read_is_named(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        ctx = world.run()
        read = publish_lock.read_bounded

        def refused(path: str, **how: Any) -> bytes | None:
            if path.endswith("AGENT.md"):
                raise UnreadableFileError("can't be opened: Permission denied")
            return read(path, **how)

        monkeypatch.setattr(publish_lock, "read_bounded", refused)
        words = r"\.halo/agents/guide/AGENT\.md can't be opened: Permission denied"
        with pytest.raises(PhaseFailed, match=words):
            sandbox.classified(ctx)
        with pytest.raises(PhaseFailed, match=words):
            sandbox.prepare_run(world.context(world.frozen / "attempts/2"))

    def test_a_surface_that_is_too_large_names_its_size(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(surface_folder, "MAX_BYTES", 2 << 20)
        with (world.halo / "docs/big.bin").open("wb") as stream:
            stream.truncate(5 << 20)
        with pytest.raises(PhaseFailed, match=r"larger than 2 MB \(5 MB"):
            world.run()

    def test_a_workspace_that_is_gone_is_named(self, world: World, tmp_path: Path) -> None:
        ctx = world.context(tmp_path / "elsewhere/1")
        world.halo.rename(world.workspace / "renamed")
        with pytest.raises(PhaseFailed, match="frozen files"):
            sandbox.prepare_run(ctx)
        with pytest.raises(PhaseFailed, match=r"^workspace_missing$"):
            sandbox.prepare_apply(ctx)

    def test_inputs_that_are_not_as_frozen_end_the_run(self, world: World) -> None:
        write(world.frozen / "tool-flow.md", "something else")
        ctx = world.context()
        with pytest.raises(PhaseFailed, match=r"^evidence_changed:tool-flow\.md$"):
            sandbox.prepare_run(ctx)
        assert not ctx.base.exists()

    def test_where_the_live_surface_has_moved_on_is_noted(self, world: World) -> None:
        ctx = world.run()
        assert json.loads(AttemptFiles(ctx.folder).differs.read_text()) == []
        world.live("INSTRUCTIONS.md", "Changed meanwhile.\n")
        later = world.context(world.frozen / "attempts/2")
        sandbox.prepare_run(later)
        assert json.loads(AttemptFiles(later.folder).differs.read_text()) == ["INSTRUCTIONS.md"]

    @pytest.mark.parametrize(
        ("rel", "text", "noted"),
        [
            ("INDEX.md", "New.\n", ["INDEX.md"]),
            ("prompts/all/new.md", "New.\n", ["prompts/all/new.md"]),
            ("../AGENTS.md", "New.\n", ["AGENTS.md"]),
            ("agents/guide/agent.yaml", "name: [\n", ["agents/guide/agent.yaml"]),
            ("agents/guide/agent.yaml", "name: Guide\n# a comment\n", []),
            ("docs/battery.md", "Twelve hours.\n", []),
            ("agents/other/agent.yaml", "name: Other\n", []),
        ],
    )
    def test_only_what_this_agents_session_would_load_is_noted(
        self, world: World, rel: str, text: str, noted: list[str]
    ) -> None:
        world.live(rel, text)
        ctx = world.run()
        found = json.loads(AttemptFiles(ctx.folder).differs.read_text())
        assert [name for name in found if not (PLATFORM_FOLDER / name).exists()] == noted

    def test_a_file_that_is_gone_since_is_noted(self, world: World) -> None:
        (world.halo / "INSTRUCTIONS.md").unlink()
        ctx = world.run()
        assert json.loads(AttemptFiles(ctx.folder).differs.read_text()) == ["INSTRUCTIONS.md"]


class TestComplete:
    def test_a_new_override_folder_is_filled_from_what_it_hides(self, world: World) -> None:
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        write(files.sandbox / "agents/scout/AGENT.md", "Scout better.\n")
        sandbox.complete(ctx)
        assert (files.sandbox / "agents/scout/agent.yaml").read_text() == "name: Scout\n"
        assert (files.sandbox / "agents/scout/AGENT.md").read_text() == "Scout better.\n"
        assert not (files.sandbox / "skills").exists()
        changes = sandbox.classified(ctx)
        assert [(change.rel, change.category) for change in changes] == [
            ("agents/scout/AGENT.md", Category.PROMPT)
        ]

    def test_an_override_that_was_there_is_left_alone(self, world: World) -> None:
        world.shared("agents/guide/extra.txt", "global\n")
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "agents/guide/AGENT.md", "Other.\n")
        sandbox.complete(ctx)
        assert not (AttemptFiles(ctx.folder).sandbox / "agents/guide/extra.txt").exists()


class TestClassified:
    def test_only_what_the_draft_touched_is_compared_with_the_live_surface(self, world: World) -> None:
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md", "Numbers first.\n")
        world.live("USER.md", "A person's new profile.\n")
        world.live("agents/guide/AGENT.md", "A person's edit.\n")
        assert [change.rel for change in sandbox.classified(ctx)] == ["INSTRUCTIONS.md"]

    def test_what_is_live_already_is_no_change(self, world: World) -> None:
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md", "Numbers first.\n")
        world.live("INSTRUCTIONS.md", "Numbers first.\n")
        assert sandbox.classified(ctx) == ()


class TestSwitchedOff:
    """An override folder without a file hides the one below it: whoever made it has switched that off."""

    SKILL = "---\nname: review\ndescription: Reviews.\n---\nLook three times.\n"

    @pytest.mark.parametrize("folder", [".halo/skills/review", ".agents/skills/review"])
    def test_a_draft_cannot_switch_it_on_by_itself(self, world: World, folder: str) -> None:
        (world.workspace / folder / "nothing").mkdir(parents=True)
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        write(files.sandbox / "skills/review/SKILL.md", self.SKILL)
        sandbox.complete(ctx)
        assert not (files.sandbox / "skills/review/helper.txt").exists(), "nothing is there to be filled from"
        [change] = sandbox.classified(ctx)
        assert (change.category, change.why) == (Category.MANUAL, "a new skill")
        assert [change.rel for change in sandbox.would_publish(ctx)] == ["skills/review/SKILL.md"]

    def test_an_agent_neither(self, world: World) -> None:
        (world.halo / "agents/scout").mkdir()
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "agents/scout/agent.yaml", "name: Scout\n")
        [change] = sandbox.classified(ctx)
        assert (change.rel, change.category) == ("agents/scout/agent.yaml", Category.MANUAL)
        assert sandbox.effective_changes(AttemptFiles(ctx.folder), world.global_folder) == (change.rel,)

    def test_a_prompt_that_is_the_global_one_again_is_a_change(self, world: World) -> None:
        world.shared("prompts/all/tone.md", "Be kind.\n")
        (world.halo / "prompts/all").mkdir(parents=True)
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "prompts/all/tone.md", "Be kind.\n")
        [change] = sandbox.classified(ctx)
        assert (change.rel, change.category) == ("prompts/all/tone.md", Category.PROMPT)

    def test_switched_off_for_the_whole_machine_counts_too(self, world: World) -> None:
        """A skill that ships with Halo, hidden by an empty folder of ``global/``: a draft's would be a new one."""
        shipped = next(path.name for path in (PLATFORM_FOLDER / "skills").iterdir() if path.is_dir())
        (world.global_folder / "skills" / shipped).mkdir()
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        text = (PLATFORM_FOLDER / "skills" / shipped / "SKILL.md").read_text()
        write(files.sandbox / "skills" / shipped / "SKILL.md", f"{text}More.\n")
        sandbox.complete(ctx)
        assert {change.category for change in sandbox.classified(ctx)} == {Category.MANUAL}

    def test_it_stays_so_when_the_attempt_is_reduced(self, world: World) -> None:
        (world.halo / "skills/review").mkdir(parents=True)
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        write(files.sandbox / "skills/review/SKILL.md", self.SKILL)
        sandbox.reduce(ctx.folder, global_folder=world.global_folder)
        assert "skills/review/SKILL.md" not in sandbox.base_versions(files, world.global_folder)


class TestVerifyUntouched:
    def test_an_untouched_attempt_passes_and_a_draft_is_no_tampering(self, world: World) -> None:
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md", "New.\n")
        write(AttemptFiles(ctx.folder).patch, patch_text())
        sandbox.verify_untouched(ctx)

    @pytest.mark.parametrize(
        "rel",
        ["base/.halo/INSTRUCTIONS.md", "base/.halo/new.md", "base.json", "context-differs.json"],
    )
    def test_a_change_in_the_attempt_is_named(self, world: World, rel: str) -> None:
        ctx = world.run()
        write(ctx.folder / rel, "tampered")
        with pytest.raises(PhaseFailed, match=f"^evidence_changed:{rel}$"):
            sandbox.verify_untouched(ctx)

    @pytest.mark.parametrize("rel", ["source-snapshot.json", "meta.json", "evo-context.json", "inputs.json"])
    def test_a_change_of_an_input_is_named(self, world: World, rel: str) -> None:
        ctx = world.run()
        (world.frozen / rel).unlink()
        with pytest.raises(PhaseFailed, match=f"^evidence_changed:{rel}$"):
            sandbox.verify_untouched(ctx)

    def test_a_file_replaced_by_a_link_to_the_same_text_is_a_change(
        self, world: World, tmp_path: Path
    ) -> None:
        ctx = world.run()
        path = ctx.base / ".halo/INSTRUCTIONS.md"
        path.rename(tmp_path / "moved")
        path.symlink_to(tmp_path / "moved")
        with pytest.raises(PhaseFailed, match="evidence_changed"):
            sandbox.verify_untouched(ctx)


class TestReduce:
    def test_keeps_changed_files_with_their_base_versions(self, world: World) -> None:
        write(world.workspace / "AGENTS.md", "Project.\n")
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        write(files.sandbox / "INSTRUCTIONS.md", "Numbers first.\n")
        write(files.sandbox / "agents/scout/AGENT.md", "Scout better.\n")
        write(files.sandbox / "INDEX.md", "New index.\n")
        sandbox.complete(ctx)
        changed = sandbox.effective_changes(files, world.global_folder)
        for _ in range(2):
            sandbox.reduce(ctx.folder, global_folder=world.global_folder)
            assert names(ctx.sandbox) == {
                ".halo/INSTRUCTIONS.md",
                ".halo/INDEX.md",
                ".halo/agents/scout/AGENT.md",
            }
            assert names(ctx.base) == {".halo/INSTRUCTIONS.md", "global/agents/scout/AGENT.md"}
        world.shared("agents/scout/AGENT.md", "The global one moved on.\n")
        assert sandbox.effective_changes(files, world.global_folder) == changed
        before = sandbox.base_versions(files, world.global_folder)
        assert before["agents/scout/AGENT.md"] == b"You are the scout.\n"
        assert before["INSTRUCTIONS.md"] == b"Answer well.\n"

    def test_an_attempt_without_a_change_keeps_nothing(self, world: World) -> None:
        ctx = world.run()
        sandbox.reduce(ctx.folder, global_folder=world.global_folder)
        assert names(ctx.sandbox) == names(ctx.base) == set()


class TestSkillsBesideTheSurface:
    """A skill of ``.agents/skills`` hides the global one, and a draft's override hides it in turn."""

    def head(self, more: str = "", body: str = "Old.") -> str:
        return f"---\nname: lint\ndescription: Lints.\n{more}---\n{body}\n"

    def test_an_override_is_judged_against_the_skill_it_hides(self, world: World) -> None:
        world.shared("skills/lint/SKILL.md", self.head())
        write(world.workspace / ".agents/skills/lint/SKILL.md", self.head("requiresAccess: full\n"))
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "skills/lint/SKILL.md", self.head(body="New."))
        [change] = sandbox.classified(ctx)
        assert (change.rel, change.category) == ("skills/lint/SKILL.md", Category.MANUAL)

    def test_a_copy_of_the_global_one_is_no_copy_of_what_counts(self, world: World) -> None:
        world.shared("skills/lint/SKILL.md", self.head())
        write(world.workspace / ".agents/skills/lint/SKILL.md", self.head("requiresAccess: full\n"))
        ctx = world.run()
        write(AttemptFiles(ctx.folder).sandbox / "skills/lint/SKILL.md", self.head())
        [change] = sandbox.classified(ctx)
        assert change.category is Category.MANUAL

    def test_an_override_is_filled_from_it(self, world: World) -> None:
        write(world.workspace / ".agents/skills/lint/SKILL.md", self.head())
        write(world.workspace / ".agents/skills/lint/rules.txt", "r\n")
        ctx = world.run()
        files = AttemptFiles(ctx.folder)
        write(files.sandbox / "skills/lint/SKILL.md", self.head(body="New."))
        sandbox.complete(ctx)
        assert (files.sandbox / "skills/lint/rules.txt").read_text() == "r\n"
        assert [change.rel for change in sandbox.classified(ctx)] == ["skills/lint/SKILL.md"]
