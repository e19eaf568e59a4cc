"""Phase B: an answer or one corrective pass; and the control it is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.turn import Limits
from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import parse_patch
from evolution.artifacts.results import Control, Draft, DryRun, DryRunFailure
from evolution.errors import PhaseFailed
from evolution.phases.context import ChildResult, PhaseContext
from evolution.phases.dry_run import control, dry_run
from tests.evolution.phase_world import PROBE, World, crashes, make_world, patch_text, says


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture
def ctx(world: World) -> PhaseContext:
    return world.run()


DRAFT = Draft(parse_patch(patch_text()), ("INSTRUCTIONS.md",))
FIXED = Draft(parse_patch(patch_text(body="fixed")), ("INSTRUCTIONS.md",))


def never(_draft: Draft, _failure: DryRunFailure) -> Draft:
    raise AssertionError("no fix was due")


def test_the_scenarios_agent_answers_on_the_sandbox(world: World, ctx: PhaseContext) -> None:
    world.children = [says("Two hours.")]
    found = dry_run(ctx, DRAFT, fix=never)
    files = AttemptFiles(ctx.folder)
    assert (found.output, found.fixed, found.draft) == ("Two hours.", False, DRAFT)
    assert files.dry_run_output.read_text() == "Two hours."
    (spec,) = world.asked
    assert (spec.agent_id, spec.brief, spec.surface, spec.timeout_sec) == (
        "guide",
        PROBE,
        files.sandbox,
        2700,
    )


def test_it_sees_the_workspace_read_only_with_the_sandbox_in_place(world: World, ctx: PhaseContext) -> None:
    world.children = [says("Two hours.")]
    dry_run(ctx, DRAFT, fix=never)
    view = world.asked[0].view
    mount = view.mount_of(world.workspace / ".halo/INSTRUCTIONS.md")
    assert mount is not None
    assert mount.source == AttemptFiles(ctx.folder).sandbox.resolve()
    assert not any(mount.writable for mount in view.mounts)
    assert view.shell == "sandbox"


def test_it_has_the_limits_and_the_readable_paths_of_the_workspaces_sessions(
    world: World, ctx: PhaseContext, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    own = replace(ctx, limits=Limits(shell_timeout_sec=7), readable=(data,))
    world.children = [says("Two hours."), says("Three hours.")]
    dry_run(own, DRAFT, fix=never)
    control(own, DRAFT)
    assert [spec.limits.shell_timeout_sec for spec in world.asked] == [7, 7]
    for spec in world.asked:
        mount = spec.view.mount_of(data / "rows.csv")
        assert mount is not None and not mount.writable


@pytest.mark.parametrize("first", [crashes(), says(" \n")])
def test_a_failure_is_logged_and_corrected_once(world: World, ctx: PhaseContext, first: object) -> None:
    world.children = [first, says("Two hours.")]  # type: ignore[list-item]
    told: list[DryRunFailure] = []

    def fix(draft: Draft, failure: DryRunFailure) -> Draft:
        assert draft is DRAFT
        told.append(failure)
        return FIXED

    found = dry_run(ctx, DRAFT, fix=fix)
    assert (found.draft, found.fixed, found.output) == (FIXED, True, "Two hours.")
    assert told[0].log.read_text().startswith(told[0].reason)
    assert len({spec.session_folder for spec in world.asked}) == 2


def test_a_second_failure_ends_the_run(world: World, ctx: PhaseContext) -> None:
    world.children = [crashes("first"), crashes("second")]
    with pytest.raises(PhaseFailed, match=r"^dry-run never succeeded: .*second"):
        dry_run(ctx, DRAFT, fix=lambda draft, failure: FIXED)
    files = AttemptFiles(ctx.folder)
    assert "first" in files.dry_run_failure(1).read_text()
    assert "second" in files.dry_run_failure(2).read_text()


def test_a_fix_that_fails_its_checks_ends_the_run(world: World, ctx: PhaseContext) -> None:
    world.children = [crashes()]

    def fix(_draft: Draft, _failure: DryRunFailure) -> Draft:
        raise PhaseFailed("locked:INSTRUCTIONS.md")

    with pytest.raises(PhaseFailed, match=r"^locked:"):
        dry_run(ctx, DRAFT, fix=fix)


class TestControl:
    def test_answers_on_the_base(self, world: World, ctx: PhaseContext) -> None:
        world.children = [says("It depends.")]
        assert control(ctx, DRAFT) == Control(output="It depends.")
        files = AttemptFiles(ctx.folder)
        assert world.asked[0].surface == files.base
        assert files.control_output.read_text() == "It depends."

    def test_without_an_answer_the_run_goes_on_and_says_so(self, world: World, ctx: PhaseContext) -> None:
        world.children = [crashes("overloaded")]
        found = control(ctx, DRAFT)
        assert found.output is None
        assert "overloaded" in found.failure
        assert "overloaded" in AttemptFiles(ctx.folder).control_output.read_text()

    @pytest.mark.parametrize(
        ("output", "same"),
        [("Two  hours.\n", True), ("Two hours.", True), ("two hours.", False), (None, False)],
    )
    def test_is_compared_white_space_aside(self, output: str | None, same: bool) -> None:
        assert Control(output=output).same_as(DryRun("Two hours.", DRAFT)) is same


@pytest.mark.parametrize("name", ["dry-run-output.txt", "control-output.txt"])
def test_outputs_are_evidence(world: World, ctx: PhaseContext, name: str) -> None:
    world.children = [says("Two hours."), says("It depends.")]
    dry_run(ctx, DRAFT, fix=never)
    control(ctx, DRAFT)
    sandbox.verify_untouched(ctx)
    (ctx.folder / name).write_text("better")
    with pytest.raises(PhaseFailed, match=f"^evidence_changed:{name}$"):
        sandbox.verify_untouched(ctx)


def test_a_child_that_ran_out_of_time_gave_no_answer(world: World, ctx: PhaseContext) -> None:
    world.children = [lambda spec: ChildResult(exit_code=0, text="half an ans", ended_by="timeout")]
    assert "out of time" in control(ctx, DRAFT).failure
