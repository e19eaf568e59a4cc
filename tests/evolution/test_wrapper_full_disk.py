"""A disk that is full while a wrapper works: the row says so, nothing is half written, and on it goes after."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from core.db.clock import database_now
from evolution.approve import approve, seen_now
from evolution.models import EvolutionRun
from evolution.retry import retry
from tests.evolution.process_world import ProcessWorld, Steps, fork_wrapper, tick
from tests.evolution.rows import fresh, make_user
from tests.evolution.scripted_agents import NEW, OLD

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

GAVE_UP = 1
AGENT_FILE = "agents/guide/AGENT.md"
REASON = "No space left on device: /disk/file"


@pytest.fixture
def world(tmp_path: Path) -> ProcessWorld:
    return ProcessWorld.make(tmp_path, "ws")


def full_at(step: str, folder: Path) -> Steps:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk/file")

    return Steps(folder / "steps", also={step: full})


@pytest.mark.parametrize("step", ["sandbox", "draft", "gates"])
def test_a_run_fails_with_the_reason_and_can_be_retried(
    world: ProcessWorld, tmp_path: Path, step: str
) -> None:
    run = world.pending()
    assert tick(full_at(step, tmp_path)) == [0]
    assert (fresh(run).status, fresh(run).failure_reason) == ("failed", REASON)
    assert world.surface() == OLD
    retry(run_id=run.pk, attempt=1, hint=None, user=make_user("olga", "review"), now=database_now())
    assert tick() == [0]
    assert (fresh(run).status, fresh(run).failure_reason) == ("awaiting_review", "")


@pytest.mark.parametrize("step", ["merge", f"stage:{AGENT_FILE}", "manifest", "checkpoint"])
def test_an_apply_before_its_checkpoint_fails_and_touches_nothing(
    world: ProcessWorld, tmp_path: Path, step: str
) -> None:
    apply = world.approved()
    assert tick(full_at(step, tmp_path)) == [0]
    assert (fresh(apply).status, fresh(apply).failure_reason) == ("failed", REASON)
    assert world.surface() == OLD and not world.marker_stands
    run = EvolutionRun.objects.get()
    assert run.status == "approved"
    again = approve(runs=[seen_now(run)], user=make_user("olga", "review"), now=database_now())
    assert tick() == [0]
    assert fresh(again).status == "applied"
    assert world.surface() == NEW


@pytest.mark.parametrize("step", ["mark", f"exchange:{AGENT_FILE}", "unmark"])
def test_an_apply_after_it_keeps_its_row_and_is_finished_by_the_next_wrapper(
    world: ProcessWorld, tmp_path: Path, step: str
) -> None:
    apply = world.approved()
    assert tick(full_at(step, tmp_path)) == [GAVE_UP]
    assert fresh(apply).status == "syncing"
    assert "No space left on device" in fresh(apply).failure_reason
    assert tick() == [0]
    assert (fresh(apply).status, fresh(apply).failure_reason) == ("applied", "")
    assert world.surface() == NEW and not world.marker_stands


@pytest.mark.parametrize("step", ["write-plan", f"exchange:{AGENT_FILE}", "unmark"])
def test_a_rollback_keeps_its_row_and_is_finished_by_the_next_wrapper(
    world: ProcessWorld, tmp_path: Path, step: str
) -> None:
    apply = world.applied()
    assert fork_wrapper(world.begin_rollback(apply), step=full_at(step, tmp_path)) == GAVE_UP
    assert fresh(apply).status == "rolling_back"
    assert "No space left on device" in fresh(apply).failure_reason
    assert tick() == [0]
    assert (fresh(apply).status, fresh(apply).failure_reason) == ("rolled_back", "")
    assert world.surface() == OLD and not world.marker_stands
