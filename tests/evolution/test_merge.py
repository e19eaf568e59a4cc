"""Phase A': the merger's word, its checks in order, and line endings that stay the target's."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Source
from evolution.errors import PhaseFailed
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from evolution.phases.draft import DraftInput, draft
from evolution.phases.merge import merge, with_line_endings
from evolution.sandbox import verify_untouched
from tests.evolution.phase_world import RUN_ID, Child, World, crashes, drafts, make_world, write

NEW: dict[str, str | bytes] = {"INSTRUCTIONS.md": "Answer well. Numbers first.\n"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def source(world: World) -> Source:
    ctx = world.run()
    world.children = [drafts(ctx, dict(NEW))]
    draft(ctx, DraftInput())
    return Source(RUN_ID, ctx.folder, world.frozen, "numbers first")


def merges(
    ctx: PhaseContext,
    files: dict[str, str | bytes],
    *,
    log: str | None = "run: applied",
    abort: str | None = None,
) -> Child:
    def child(spec: ChildSpec) -> ChildResult:
        attempt = AttemptFiles(ctx.folder)
        for rel, text in files.items():
            write(attempt.sandbox / rel, text)
        if log is not None:
            write(attempt.apply_log, log)
        if abort is not None:
            write(attempt.abort, abort)
        return ChildResult(exit_code=0, text="Merged.", ended_by="exit")

    return child


def reason_of(world: World, source: Source, child: Child, ctx: PhaseContext, **more: object) -> str:
    world.children = [child]
    with pytest.raises(PhaseFailed) as caught:
        merge(ctx, [source], "", **more)  # type: ignore[arg-type]
    return caught.value.reason


def test_a_merge_is_taken_from_the_surface_as_it_is_now(world: World, source: Source) -> None:
    world.live("INSTRUCTIONS.md", "A person's edit.\n")
    ctx = world.apply()
    world.children = [merges(ctx, {"INSTRUCTIONS.md": "A person's edit. Numbers first.\n"})]
    found = merge(ctx, [source], "only for batteries")
    assert found.changed == ("INSTRUCTIONS.md",)
    assert found.log == "run: applied"
    assert (AttemptFiles(ctx.folder).base / "INSTRUCTIONS.md").read_text() == "A person's edit.\n"
    brief = world.asked[-1].brief
    assert "only for batteries" in brief
    assert str(source.folder / "patch.md") in brief
    assert "+Answer well. Numbers first." in brief


def test_the_merger_writes_only_its_artifacts_and_the_sandbox(world: World, source: Source) -> None:
    ctx = world.apply()
    world.children = [merges(ctx, dict(NEW))]
    merge(ctx, [source], "")
    spec = world.asked[-1]
    files = AttemptFiles(ctx.folder)
    writable = {mount.path for mount in spec.view.mounts if mount.writable}
    assert (spec.agent_id, writable) == ("__apply_agent__", {files.sandbox, files.apply_log, files.abort})
    mount = spec.view.mount_of(source.folder / "patch.md")
    assert mount is not None and not mount.writable


def test_exit_code_comes_first(world: World, source: Source) -> None:
    ctx = world.apply()
    write(AttemptFiles(ctx.folder).abort, "Contradiction.")
    assert "exit code 1" in reason_of(world, source, crashes(), ctx)


def test_abort_comes_before_the_log(world: World, source: Source) -> None:
    ctx = world.apply()
    child = merges(ctx, dict(NEW), abort="\n  " + "They contradict. " * 40 + "\nDetails.\n")
    reason = reason_of(world, source, child, ctx)
    assert reason.startswith("They contradict. They")
    assert len(reason) == 300
    assert "Details" not in reason


def test_an_empty_abort_still_ends_the_apply(world: World, source: Source) -> None:
    ctx = world.apply()
    assert "without a reason" in reason_of(world, source, merges(ctx, dict(NEW), abort=""), ctx)


def test_a_missing_log(world: World, source: Source) -> None:
    ctx = world.apply()
    assert "neither apply.log" in reason_of(world, source, merges(ctx, dict(NEW), log=None), ctx)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "Nothing was changed"),
        ({**NEW, "docs/battery.md": "x\n"}, "docs/battery.md was changed"),
        ({"agents/guide/agent.yaml": "name: [\n"}, "can't be published"),
    ],
)
def test_changed_files_are_checked_as_in_a_draft(
    world: World, source: Source, files: dict[str, str | bytes], words: str
) -> None:
    ctx = world.apply()
    assert words in reason_of(world, source, merges(ctx, files), ctx)


def test_locks_hold_for_a_merge(world: World, source: Source) -> None:
    ctx = world.apply()
    child = merges(ctx, dict(NEW))
    assert reason_of(world, source, child, ctx, locked=("INSTRUCTIONS.md",)) == "locked:INSTRUCTIONS.md"


def test_a_source_without_its_patch_is_named(world: World, source: Source) -> None:
    (source.folder / "patch.md").unlink()
    ctx = world.apply()
    assert f"run-{RUN_ID}" in reason_of(world, source, merges(ctx, dict(NEW)), ctx)
    assert not AttemptFiles(ctx.folder).apply_log.exists()


def test_a_file_that_the_merge_dropped_is_no_change(world: World, source: Source) -> None:
    ctx = world.apply()
    dropped = AttemptFiles(ctx.folder).sandbox / "agents/guide/AGENT.md"
    inner = merges(ctx, dict(NEW))

    def child(spec: ChildSpec) -> ChildResult:
        dropped.unlink()
        return inner(spec)

    world.children = [child]
    assert merge(ctx, [source], "").changed == ("INSTRUCTIONS.md",)


def test_a_merge_that_only_drops_files_has_nothing_to_publish(world: World, source: Source) -> None:
    ctx = world.apply()
    dropped = AttemptFiles(ctx.folder).sandbox / "agents/guide/AGENT.md"
    inner = merges(ctx, {})

    def child(spec: ChildSpec) -> ChildResult:
        dropped.unlink()
        return inner(spec)

    assert "Nothing was changed" in reason_of(world, source, child, ctx)


class TestLineEndings:
    def test_a_windows_file_stays_one(self, world: World, source: Source) -> None:
        world.live("INSTRUCTIONS.md", "Answer well.\r\nBe kind.\r\n")
        ctx = world.apply()
        world.children = [merges(ctx, {"INSTRUCTIONS.md": "Answer well.\nBe kind.\nNumbers first.\r\n"})]
        merge(ctx, [source], "")
        path = AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md"
        assert path.read_bytes() == b"Answer well.\r\nBe kind.\r\nNumbers first.\r\n"

    def test_line_endings_alone_are_no_change(self, world: World, source: Source) -> None:
        ctx = world.apply()
        child = merges(ctx, {"INSTRUCTIONS.md": "Answer well.\r\n"})
        assert "Nothing was changed" in reason_of(world, source, child, ctx)

    @pytest.mark.parametrize(
        ("content", "example", "wanted"),
        [
            (b"a\r\nb\n", b"x\n", b"a\nb\n"),
            (b"a\nb\r\n", b"x\r\n", b"a\r\nb\r\n"),
            (b"a\r\nb\n", b"x\r\ny\n", b"a\r\nb\n"),
            (b"a\r\nb\n", b"x", b"a\r\nb\n"),
            (b"a\r\n\0", b"x\n", b"a\r\n\0"),
        ],
    )
    def test_follow_the_example(self, content: bytes, example: bytes, wanted: bytes) -> None:
        assert with_line_endings(content, example) == wanted


def test_what_was_checked_is_what_will_be_published(world: World, source: Source) -> None:
    ctx = world.apply()
    world.children = [merges(ctx, dict(NEW))]
    merge(ctx, [source], "")
    verify_untouched(ctx)
    write(AttemptFiles(ctx.folder).sandbox / "INDEX.md", "smuggled in\n")
    with pytest.raises(PhaseFailed, match=r"^evidence_changed:sandbox/\.halo/INDEX\.md$"):
        verify_untouched(ctx)
