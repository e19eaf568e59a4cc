"""``kill -9`` of a wrapper at every boundary, its successor by the ticker, and the row true at the end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from evolution.artifacts.files import AttemptFiles
from evolution.models import EvolutionRun, RegressionScenario
from evolution.phases.ratchet import read_kept_results
from tests.evolution.process_world import ProcessWorld, Steps, fork_wrapper, tick
from tests.evolution.rows import fresh
from tests.evolution.scripted_agents import NEW, OLD

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

PARTS = 2
"""Every test takes each second step, so that two workers share the work."""

KILLED = -signal.SIGKILL


def names(log: Path) -> list[str]:
    return log.read_text().splitlines()


def share(steps: list[str], part: int, *, first: int = 1) -> list[tuple[int, str]]:
    return [(number, name) for number, name in enumerate(steps, start=1) if number >= first][part::PARTS]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_run_killed_anywhere_is_worked_again(tmp_path: Path, part: int) -> None:
    log = tmp_path / "steps"
    world = ProcessWorld.make(tmp_path, "clean")
    run = world.pending()
    assert tick(Steps(log)) == [0]
    assert (fresh(run).status, fresh(run).score_avg) == ("awaiting_review", 90.0)
    steps = names(log)
    assert {"sandbox", "draft", "dry_run", "control", "score", "gates", "finish", "finished"} <= set(steps)

    for number, name in share(steps, part):
        world = ProcessWorld.make(tmp_path, f"killed-{number}")
        run = world.pending()
        assert tick(Steps(tmp_path / "again", at=number)) == [KILLED], name
        if name != "finished":
            assert fresh(run).status == "running", name
            assert tick() == [0], name
        run = fresh(run)
        assert (run.status, run.attempts) == ("awaiting_review", 1 if name == "finished" else 2), name
        assert world.surface() == OLD, "a run writes nothing live"


@pytest.mark.parametrize("part", range(PARTS))
def test_an_apply_killed_anywhere_lands_whole(tmp_path: Path, part: int) -> None:
    log = tmp_path / "steps"
    world = ProcessWorld.make(tmp_path, "clean")
    apply = world.approved()
    assert tick(Steps(log)) == [0]
    assert fresh(apply).status == "applied"
    assert world.surface() == NEW
    steps = names(log)
    assert {"merge", "regress", "preflight", "checkpoint", "syncing", "mark", "unmark", "finish"} <= set(
        steps
    )

    for number, name in share(steps, part):
        world = ProcessWorld.make(tmp_path, f"killed-{number}")
        apply = world.approved()
        assert tick(Steps(tmp_path / "again", at=number)) == [KILLED], name
        if name != "finished":
            before_checkpoint = number <= steps.index("checkpoint") + 1
            assert fresh(apply).status == ("running" if before_checkpoint else "syncing"), name
            assert tick() == [0], name
        apply = fresh(apply)
        assert apply.status == "applied", (name, apply.failure_reason)
        assert EvolutionRun.objects.get(current_apply=apply).status == "applied"
        assert world.surface() == NEW, name
        assert not world.marker_stands


@pytest.mark.parametrize("part", range(PARTS))
def test_an_apply_that_drifts_and_is_killed_anywhere_goes_back_whole(tmp_path: Path, part: int) -> None:
    """A person edits a file after the snapshot: the old surface comes back around their edit."""
    person = "A person's line.\n"
    last = "agents/guide/AGENT.md"

    def drifting(world: ProcessWorld, at: int, log: Path) -> Steps:
        edit = {"syncing": lambda: (world.paths.halo / last).write_text(person)}
        return Steps(log, at=at, also=edit)  # type: ignore[arg-type]

    log = tmp_path / "steps"
    world = ProcessWorld.make(tmp_path, "clean")
    apply = world.approved()
    assert tick(drifting(world, 0, log)) == [0]
    wanted = {**OLD, last: person}
    assert world.surface() == wanted
    assert fresh(apply).status == "failed"
    assert fresh(apply).failure_reason == f"drift:{last}"
    steps = names(log)
    first = steps.index("syncing") + 2  # the edit is in place from there on

    for number, name in share(steps, part, first=first):
        world = ProcessWorld.make(tmp_path, f"killed-{number}")
        apply = world.approved()
        assert tick(drifting(world, number, tmp_path / "again")) == [KILLED], name
        if name != "finished":
            assert tick() == [0], name
        apply = fresh(apply)
        assert (apply.status, apply.failure_reason) == ("failed", f"drift:{last}"), name
        assert EvolutionRun.objects.get(current_apply=apply).status == "approved"
        assert world.surface() == wanted, name
        assert not world.marker_stands


@pytest.mark.parametrize("part", range(PARTS))
def test_a_rollback_killed_anywhere_is_finished(tmp_path: Path, part: int) -> None:
    log = tmp_path / "steps"
    world = ProcessWorld.make(tmp_path, "clean")
    apply = world.applied()
    assert fork_wrapper(world.begin_rollback(apply), step=Steps(log)) == 0
    assert fresh(apply).status == "rolled_back"
    assert world.surface() == OLD
    steps = names(log)
    assert {"planning", "write-plan", "rolling_back", "mark", "unmark", "finish"} <= set(steps)

    for number, name in share(steps, part):
        world = ProcessWorld.make(tmp_path, f"killed-{number}")
        apply = world.applied()
        order = world.begin_rollback(apply)
        assert fork_wrapper(order, step=Steps(tmp_path / "again", at=number)) == KILLED, name
        if name != "finished":
            assert fresh(apply).status == "rolling_back", name
            assert tick() == [0], name
        apply = fresh(apply)
        assert apply.status == "rolled_back", (name, apply.failure_reason)
        assert EvolutionRun.objects.get(current_apply=apply).status == "rolled_back"
        assert world.surface() == OLD, name
        assert not world.marker_stands
        assert apply.rollback_outcome["removed"] == ["skills/units/SKILL.md"]


def test_a_landing_leaves_its_scenario_the_next_apply_is_held_to_it_and_a_rollback_retires_it(
    tmp_path: Path,
) -> None:
    world = ProcessWorld.make(tmp_path, "ratchet")
    first = world.applied()
    kept = RegressionScenario.objects.get(apply_id=first.pk)
    assert (kept.agent_id, kept.answer, kept.retired_at) == ("guide", "Two hours, says sandbox.", None)
    for rel, text in OLD.items():
        (world.paths.halo / rel).write_text(text)

    second = world.applied()

    files = AttemptFiles(world.paths.evolution.apply_attempt(second.pk, 1))
    (held,) = read_kept_results(files)
    assert (held.scenario_id, held.state, held.behavior) == (kept.pk, "held", 90)
    assert fork_wrapper(world.begin_rollback(second)) == 0
    assert fresh(second).status == "rolled_back"
    left = RegressionScenario.objects.get(apply_id=second.pk)
    assert (left.retired_reason, fresh(kept).retired_at) == ("rolled back", None)
