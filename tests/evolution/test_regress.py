"""Phase B': the floor, its confirmation by two more askings, and the run that is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Merge, Source
from evolution.errors import PhaseFailed
from evolution.phases.context import PhaseContext
from evolution.phases.regress import regress
from tests.evolution.phase_world import (
    PROBE,
    RUN_ID,
    Child,
    World,
    crashes,
    make_world,
    merged,
    patch_text,
    says,
    score_text,
    scores,
    write,
)

OTHER_ID = "01jzzzzzzzzzzzzzzzzzzzzzzy"
MERGED = Merge(("INSTRUCTIONS.md",), "")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def ctx(world: World) -> PhaseContext:
    return merged(world)


def source(world: World, run_id: str = RUN_ID) -> Source:
    frozen = world.halo / "evo/runs" / run_id
    files = AttemptFiles(frozen / "attempts/1")
    write(files.patch, patch_text())
    write(files.baseline, "It depends.\n")
    write(files.dry_run_output, "Two hours.\n")
    return Source(run_id, files.folder, frozen, "numbers first")


def scored(ctx: PhaseContext, number: int, run_id: str = RUN_ID, **figures: int) -> Child:
    return scores(AttemptFiles(ctx.folder).regress(run_id), number, **figures)


def test_every_source_is_tried_on_the_merged_sandbox(world: World, ctx: PhaseContext) -> None:
    sources = [source(world), source(world, OTHER_ID)]
    world.children = [says("Two."), scored(ctx, 1), says("Three."), scored(ctx, 1, OTHER_ID)]
    found = regress(ctx, sources, MERGED, "only for batteries")
    assert [(run.run_id, run.askings) for run in found.runs] == [(RUN_ID, 1), (OTHER_ID, 1)]
    files = AttemptFiles(ctx.folder)
    assert files.regress(RUN_ID).dry_run_output.read_text() == "Two."
    assert files.regress(OTHER_ID).score.is_file()
    answer, scoring = world.asked[:2]
    assert (answer.surface, answer.brief) == (files.sandbox, PROBE)
    assert [mount.path for mount in scoring.view.mounts if mount.writable] == [
        files.regress(RUN_ID).score_sample(1)
    ]
    assert "only for batteries" in scoring.brief
    assert "+Numbers first." in scoring.brief
    assert world.shown == [("regress", 1, 2), ("regress", 2, 2)]


def test_exactly_fifty_holds(world: World, ctx: PhaseContext) -> None:
    world.children = [says("Two."), scored(ctx, 1, lint=50, behavior=50)]
    assert regress(ctx, [source(world)], MERGED, "").runs[0].askings == 1


@pytest.mark.parametrize("figure", ["lint", "behavior"])
def test_one_low_figure_is_outvoted(world: World, ctx: PhaseContext, figure: str) -> None:
    world.children = [
        says("Two."),
        scored(ctx, 1, **{figure: 49}),
        scored(ctx, 2, **{figure: 50}),
        scored(ctx, 3, **{figure: 80}),
    ]
    (run,) = regress(ctx, [source(world)], MERGED, "").runs
    assert (run.askings, getattr(run, figure)) == (3, 50)


@pytest.mark.parametrize("figure", ["lint", "behavior"])
def test_a_confirmed_low_figure_fails_and_names_the_run(world: World, ctx: PhaseContext, figure: str) -> None:
    world.children = [
        says("Two."),
        scored(ctx, 1, **{figure: 10}),
        scored(ctx, 2, **{figure: 90}),
        scored(ctx, 3, **{figure: 49}),
    ]
    with pytest.raises(PhaseFailed, match=f"^run-{RUN_ID} .*{figure} is 49 after 3 askings"):
        regress(ctx, [source(world)], MERGED, "")


def test_a_low_scope_alone_is_no_regression(world: World, ctx: PhaseContext) -> None:
    world.children = [says("Two."), scored(ctx, 1, scope=0)]
    assert regress(ctx, [source(world)], MERGED, "").runs[0].askings == 1


def test_no_valid_score_fails_and_names_the_run(world: World, ctx: PhaseContext) -> None:
    write(AttemptFiles(ctx.folder).regress(RUN_ID).score_sample(1), score_text())
    world.children = [says("Two."), says("forgot"), says("forgot again")]
    with pytest.raises(PhaseFailed, match=f"^run-{RUN_ID} .*No valid score"):
        regress(ctx, [source(world)], MERGED, "")


@pytest.mark.parametrize(("child", "words"), [(crashes("down"), "down"), (says("  "), "without any text")])
def test_no_answer_fails_and_names_the_run(world: World, ctx: PhaseContext, child: Child, words: str) -> None:
    world.children = [child]
    with pytest.raises(PhaseFailed, match=f"^run-{RUN_ID} .*{words}"):
        regress(ctx, [source(world)], MERGED, "")


def test_a_patch_that_is_gone_names_the_run(world: World, ctx: PhaseContext) -> None:
    gone = source(world)
    (gone.folder / "patch.md").unlink()
    with pytest.raises(PhaseFailed, match=RUN_ID):
        regress(ctx, [gone], MERGED, "")
    assert world.asked == []
