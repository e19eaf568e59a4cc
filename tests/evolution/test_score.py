"""Phase C: asked strictly, once more when it has to be, as often as wanted; the cap is the wrapper's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import parse_patch
from evolution.artifacts.results import Control, Draft, DryRun
from evolution.artifacts.score import read_summary
from evolution.errors import PhaseFailed
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from evolution.phases.score import score
from tests.evolution.phase_world import Child, World, crashes, make_world, patch_text, says, score_text, write

DRY = DryRun("Two hours.", Draft(parse_patch(patch_text()), ("INSTRUCTIONS.md",)))
CONTROL = Control(output="It depends.")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def ctx(world: World) -> PhaseContext:
    ctx = world.run()
    write(AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md", "Numbers first.\n")
    return ctx


def scores(ctx: PhaseContext, number: int, text: str | None = None) -> Child:
    def child(spec: ChildSpec) -> ChildResult:
        write(AttemptFiles(ctx.folder).score_sample(number), score_text() if text is None else text)
        return ChildResult(exit_code=0, text="100/90/80, high", ended_by="exit")

    return child


def test_the_average_is_computed_and_everything_kept(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1)]
    found = score(ctx, DRY, CONTROL)
    assert found.shown.avg == 90
    assert not found.capped
    assert read_summary(AttemptFiles(ctx.folder).score) == found


def test_the_scorer_writes_only_its_score(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1)]
    score(ctx, DRY, CONTROL)
    (spec,) = world.asked
    files = AttemptFiles(ctx.folder)
    writable = [mount.path for mount in spec.view.mounts if mount.writable]
    assert (spec.agent_id, writable, spec.view.shell) == ("__score__", [files.score_sample(1)], "none")


def test_a_scorer_sees_nothing_of_another_asking(world: World, ctx: PhaseContext) -> None:
    files = AttemptFiles(ctx.folder)
    world.children = [scores(ctx, 1), scores(ctx, 2)]
    score(ctx, DRY, CONTROL, samples=2)
    write(files.session("score-1-1") / "log.jsonl", "100/90/80")
    write(ctx.child_log, "100/90/80")

    view = world.asked[1].view

    for told in (files.score_sample(1), files.session("score-1-1") / "log.jsonl", ctx.child_log):
        assert told.exists() and view.is_hidden(told)
    assert not view.is_hidden(files.score_sample(2)) and view.may_write(files.score_sample(2))
    assert not view.is_hidden(files.baseline)


def test_the_brief_holds_the_hint_of_now_not_the_frozen_one(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1)]
    score(replace(ctx, hint="name the source"), DRY, CONTROL)
    brief = world.asked[0].brief
    assert "name the source" in brief
    assert "numbers first" not in brief


def test_the_brief_names_control_only_when_there_was_one(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1), scores(ctx, 1)]
    score(ctx, DRY, CONTROL)
    score(ctx, DRY, Control())
    assert "control-output.txt" in world.asked[0].brief
    assert "none was run" in world.asked[1].brief
    assert "+Numbers first." in world.asked[0].brief


@pytest.mark.parametrize("first", ["{", score_text(lint=101), score_text(confidence="sure"), None])
def test_a_score_that_cannot_be_used_is_asked_for_once_more(
    world: World, ctx: PhaseContext, first: str | None
) -> None:
    bad = says("forgot") if first is None else scores(ctx, 1, first)
    world.children = [bad, scores(ctx, 1)]
    assert score(ctx, DRY, CONTROL).shown.avg == 90
    assert len({spec.session_folder for spec in world.asked}) == 2


def test_a_stale_score_is_never_read(world: World, ctx: PhaseContext) -> None:
    write(AttemptFiles(ctx.folder).score_sample(1), score_text())
    world.children = [says("forgot"), crashes()]
    with pytest.raises(PhaseFailed, match="No valid score after 2 askings"):
        score(ctx, DRY, CONTROL)
    assert not AttemptFiles(ctx.folder).score.exists()


def test_twice_malformed_ends_the_run_and_says_what_is_wrong(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1, "{"), scores(ctx, 1, score_text(lint=101))]
    with pytest.raises(PhaseFailed, match="lint is 101"):
        score(ctx, DRY, CONTROL)


def test_several_samples_come_from_fresh_sessions(world: World, ctx: PhaseContext) -> None:
    world.children = [
        scores(ctx, 1, score_text(behavior=90)),
        scores(ctx, 2, score_text(behavior=60, confidence="low")),
        scores(ctx, 3, score_text(behavior=75)),
    ]
    found = score(ctx, DRY, CONTROL, samples=3)
    assert (found.shown.behavior, found.lowest.behavior, found.shown.confidence) == (75, 60, "low")
    assert found.spread == pytest.approx(10)
    assert len({spec.session_folder for spec in world.asked}) == 3
    assert world.shown == [("score", 1, 3), ("score", 2, 3), ("score", 3, 3)]


def test_a_control_that_answers_the_same_caps_behavior(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1, score_text(lint=100, behavior=95, scope=90))]
    found = score(ctx, DRY, Control(output=" Two hours. \n"))
    assert found.capped
    assert found.shown.behavior == 50
    assert found.shown.avg == 80


def test_scores_are_evidence(world: World, ctx: PhaseContext) -> None:
    world.children = [scores(ctx, 1)]
    score(ctx, DRY, CONTROL)
    write(AttemptFiles(ctx.folder).score_sample(1), score_text(behavior=100))
    with pytest.raises(PhaseFailed, match=r"^evidence_changed:score\.1\.json$"):
        sandbox.verify_untouched(ctx)
