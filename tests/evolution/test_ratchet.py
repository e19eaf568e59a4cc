"""The ratchet: which kept scenarios an apply is held to, how long they may take, and what a failure says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Kept, Merge
from evolution.errors import PhaseFailed
from evolution.phases.context import ChildResult, PhaseContext
from evolution.phases.ratchet import EACH_SEC, TIME_IS_UP, TOTAL_SEC, ratchet, read_kept_results
from tests.evolution.phase_world import Child, World, crashes, make_world, merged, says, scores, write

MERGED = Merge(("INSTRUCTIONS.md",), "")
A, B, C = (f"01jzzzzzzzzzzzzzzzzzzzzzz{letter}" for letter in "abc")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def ctx(world: World) -> PhaseContext:
    return merged(world)


def kept(scenario_id: str) -> Kept:
    return Kept(
        run_id="01jyyyyyyyyyyyyyyyyyyyyyyr",
        target="INSTRUCTIONS.md",
        agent_id="guide",
        original_message="How long does it last?",
        test_message="How long does charging take?",
        change="State the number first.",
        baseline="It depends.",
        answer="Two hours.",
        scenario_id=scenario_id,
    )


def scored(ctx: PhaseContext, scenario_id: str, number: int = 1, **figures: int) -> Child:
    return scores(AttemptFiles(ctx.folder).kept_scenario(scenario_id), number, **figures)


def times(*moments: float) -> Callable[[], float]:
    """A clock that says these in turn, then the last one for good."""
    left = list(moments)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_scenario_that_holds_is_asked_once_and_read_from_its_own_texts(
    world: World, ctx: PhaseContext
) -> None:
    world.children = [says("Two hours, roughly."), scored(ctx, A)]

    (result,) = ratchet(ctx, [kept(A)], MERGED)

    assert (result.state, result.lint, result.behavior, result.askings) == ("held", 100, 90, 1)
    answer, scoring = world.asked
    files = AttemptFiles(ctx.folder)
    assert (answer.surface, answer.brief, answer.agent_id) == (
        files.sandbox,
        "How long does charging take?",
        "guide",
    )
    assert (answer.timeout_sec, scoring.timeout_sec) == (EACH_SEC, EACH_SEC)
    own = files.kept_scenario(A)
    assert own.landed_answer.read_text() == "Two hours."
    assert str(own.landed_answer) in scoring.brief and str(own.dry_run_output) in scoring.brief
    assert f"Scenario kept: scenario-{A}" in scoring.brief and "landed earlier" in scoring.brief
    assert [mount.path for mount in scoring.view.mounts if mount.writable] == [own.score_sample(1)]
    assert read_kept_results(files) == [result]


def test_without_kept_scenarios_nobody_is_asked_and_nothing_is_written(
    world: World, ctx: PhaseContext
) -> None:
    assert ratchet(ctx, [], MERGED) == ()
    assert world.asked == [] and not AttemptFiles(ctx.folder).kept_scenarios.exists()


def test_one_low_figure_is_outvoted(world: World, ctx: PhaseContext) -> None:
    world.children = [
        says("Two."),
        scored(ctx, A, 1, behavior=49),
        scored(ctx, A, 2, behavior=50),
        scored(ctx, A, 3, behavior=80),
    ]
    (result,) = ratchet(ctx, [kept(A)], MERGED)
    assert (result.behavior, result.askings) == (50, 3)


def test_a_failure_names_the_scenario_and_how_to_retire_it(world: World, ctx: PhaseContext) -> None:
    world.children = [
        says("Two."),
        scored(ctx, A),
        says("It depends."),
        *(scored(ctx, B, number, behavior=10) for number in (1, 2, 3)),
    ]

    with pytest.raises(PhaseFailed) as caught:
        ratchet(ctx, [kept(A), kept(B), kept(C)], MERGED)

    assert f"scenario-{B}" in caught.value.reason and "behavior is 10 after 3 askings" in caught.value.reason
    assert f"halo evo scenarios retire scenario-{B}" in caught.value.reason
    found = {item.scenario_id: item for item in read_kept_results(AttemptFiles(ctx.folder))}
    assert [found[name].state for name in (A, B, C)] == ["held", "failed", "not_run"]
    assert found[C].reason == "an earlier one failed"


def test_no_answer_fails(world: World, ctx: PhaseContext) -> None:
    world.children = [crashes("there is no agent guide")]
    with pytest.raises(PhaseFailed, match="there is no agent guide"):
        ratchet(ctx, [kept(A)], MERGED)


def test_what_the_hour_does_not_hold_is_reported_as_not_run(world: World, ctx: PhaseContext) -> None:
    world.children = [says("Two."), scored(ctx, A)]

    results = ratchet(ctx, [kept(A), kept(B), kept(C)], MERGED, monotonic=times(0, 0, 0, TOTAL_SEC))

    assert [(item.state, item.reason) for item in results] == [
        ("held", ""),
        ("not_run", TIME_IS_UP),
        ("not_run", TIME_IS_UP),
    ]
    assert world.children == [] and read_kept_results(AttemptFiles(ctx.folder)) == list(results)


def test_the_last_child_gets_what_is_left_of_the_hour_and_its_timeout_is_no_failure(
    world: World, ctx: PhaseContext
) -> None:
    world.children = [lambda spec: ChildResult(exit_code=1, text="", ended_by="timeout")]

    (result,) = ratchet(ctx, [kept(A)], MERGED, monotonic=times(0, TOTAL_SEC - 30, TOTAL_SEC))

    assert world.asked[0].timeout_sec == 30
    assert (result.state, result.reason) == ("not_run", TIME_IS_UP)


def test_a_child_that_takes_its_ten_minutes_and_more_fails(world: World, ctx: PhaseContext) -> None:
    world.children = [lambda spec: ChildResult(exit_code=1, text="", ended_by="timeout")]
    with pytest.raises(PhaseFailed, match="ran out of time"):
        ratchet(ctx, [kept(A)], MERGED, monotonic=times(0, 0, EACH_SEC))


def test_what_was_kept_is_evidence(world: World, ctx: PhaseContext) -> None:
    world.children = [says("Two."), scored(ctx, A)]
    ratchet(ctx, [kept(A)], MERGED)
    AttemptFiles(ctx.folder).kept_scenario(A).landed_answer.write_text("Three hours.")
    assert [path.name for path in ctx.evidence.changed()] == ["landed-answer.txt"]


@pytest.mark.parametrize("text", ["", "{", "[{}]", '[{"scenario_id": 1, "other": 2}]', json.dumps({"a": 1})])
def test_a_damaged_report_is_no_report(tmp_path: Path, text: str) -> None:
    files = AttemptFiles(tmp_path)
    write(files.kept_scenarios, text)
    assert read_kept_results(files) == []
