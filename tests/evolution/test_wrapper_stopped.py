"""Wrappers that stop, sleep, are replaced or fail again and again: real processes, the clock by hand."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core import clock
from core.db.clock import database_now
from evolution import ticker
from evolution.heartbeat import Heartbeat
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order
from evolution.try_again import try_again
from tests.evolution.process_world import ProcessWorld, Step, fork_wrapper, start_wrapper, tick
from tests.evolution.rows import fresh, make_user
from tests.evolution.scripted_agents import NEW, OLD
from workspaces.lock_file import exclusive, shared

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

KILLED = -signal.SIGKILL
AGENT_FILE = "agents/guide/AGENT.md"


@dataclass
class At:
    """A step hook that acts at a name, the first time or each time."""

    names: tuple[str, ...]
    act: Callable[[], None]
    once: bool = True
    done: bool = field(default=False, init=False)

    def __call__(self, name: str) -> None:
        if name in self.names and not (self.once and self.done):
            self.done = True
            self.act()


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Case:
    """A row on its way, where its wrapper stops, and what is live when it has come to its end."""

    verb: str
    step: str

    def begin(self, world: ProcessWorld) -> tuple[Any, Callable[[Step], int]]:
        """The row, and what starts its first wrapper: the pid."""
        if self.verb == "rollback":
            apply = world.applied()
            order = world.begin_rollback(apply)
            return apply, lambda step: start_wrapper(order, step=step)
        row: EvolutionRun | EvolutionApply = world.pending() if self.verb == "run" else world.approved()

        def start(step: Step) -> int:
            pids: list[int] = []
            ticker.tick(spawn=lambda order: pids.append(start_wrapper(order, step=step)))
            return pids[0]

        return row, start

    def has_ended_well(self, world: ProcessWorld, row: Any) -> None:
        wanted = {"run": "awaiting_review", "apply": "applied", "rollback": "rolled_back"}[self.verb]
        row = fresh(row)
        assert (row.status, row.failure_reason) == (wanted, "")
        assert world.surface() == (NEW if self.verb == "apply" else OLD)
        assert not world.marker_stands

    def __str__(self) -> str:
        return f"{self.verb} at {self.step}"


BEFORE_THE_LOCK = [
    Case("run", "draft"),
    Case("run", "score"),
    Case("run", "finish"),
    Case("apply", "merge"),
    Case("apply", "lock"),
    Case("rollback", "lock"),
]
UNDER_THE_LOCK = [
    Case("apply", "checkpoint"),
    Case("apply", "syncing"),
    Case("apply", f"exchange:{AGENT_FILE}"),
    Case("apply", "unmark"),
    Case("apply", "finish"),
    Case("rollback", "planning"),
    Case("rollback", f"exchange:{AGENT_FILE}"),
    Case("rollback", "finish"),
]


def exit_code(pid: int) -> int:
    """Of a child that has to end by itself; one that doesn't must not hold up the tests for ever."""
    with os.fdopen(os.pidfd_open(pid)) as process:
        assert select.select([process], [], [], 60)[0], "the wrapper has not ended"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def world(tmp_path: Path) -> ProcessWorld:
    return ProcessWorld.make(tmp_path, "ws")


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Pids that are ended after the test, whatever became of them."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            continue


def begun(case: Case, world: ProcessWorld, stopped: list[int]) -> tuple[Any, int]:
    """The row, and the pid of its wrapper, which has stopped at the case's step."""
    row, start = case.begin(world)
    pid = start(At((case.step,), stop))
    stopped.append(pid)
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]), "it never came to that step"
    return row, pid


def past_the_timeout(row: Any) -> Any:
    minutes = 13 if isinstance(row, EvolutionRun) else 6
    return database_now() + timedelta(minutes=minutes)


def work_off(row: Any) -> None:
    """Passes at a time past the timeout, then at the real one, until the row rests."""
    tick(now=past_the_timeout(row))
    while tick():
        pass


@pytest.mark.parametrize("case", [*BEFORE_THE_LOCK, *UNDER_THE_LOCK], ids=str)
def test_a_stopped_wrapper_past_its_timeout_is_ended_and_succeeded(
    world: ProcessWorld, stopped: list[int], case: Case
) -> None:
    row, pid = begun(case, world, stopped)
    attempts = fresh(row).attempts
    assert tick() == [], "its heartbeat is fresh: it may be slow"
    assert fresh(row).attempts == attempts
    work_off(row)
    assert exit_code(pid) == KILLED
    assert fresh(row).attempts == attempts + 1
    case.has_ended_well(world, row)


@pytest.fixture
def out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ticker can't end what it finds stale; who waits for the lock does so for a moment only."""
    monkeypatch.setattr("evolution.stale.end_process", lambda row: None)
    monkeypatch.setattr("evolution.publishing_lock.exclusive", partial(exclusive, wait_sec=0.2))
    monkeypatch.setattr("evolution.sandbox.shared", partial(shared, wait_sec=0.2))


@pytest.mark.usefixtures("out_of_reach")
@pytest.mark.parametrize("case", BEFORE_THE_LOCK, ids=str)
def test_a_wrapper_that_wakes_after_its_row_was_worked_again_changes_nothing(
    world: ProcessWorld, stopped: list[int], case: Case
) -> None:
    """Invariant 2; it wakes within the seconds for which a confirmed claim is not asked again."""
    row, pid = begun(case, world, stopped)
    work_off(row)
    case.has_ended_well(world, row)
    (world.paths.halo / "INSTRUCTIONS.md").write_text("A person's line.\n")
    before, live = _facts(), world.surface()
    os.kill(pid, signal.SIGCONT)
    assert exit_code(pid) == 0, "it leaves in peace"
    assert _facts() == before
    assert world.surface() == live
    assert not world.marker_stands


@pytest.mark.usefixtures("out_of_reach")
@pytest.mark.parametrize("case", UNDER_THE_LOCK, ids=str)
def test_a_stopped_wrapper_that_holds_the_lock_is_ended_by_its_successor(
    world: ProcessWorld, stopped: list[int], case: Case
) -> None:
    """Before the checkpoint as well, where a successor copies the surface first and waits for its shared side."""
    row, pid = begun(case, world, stopped)
    work_off(row)
    assert exit_code(pid) == KILLED
    case.has_ended_well(world, row)


def _facts() -> list[Any]:
    return [list(model._default_manager.order_by("pk").values()) for model in (EvolutionRun, EvolutionApply)]


# -- clocks


@pytest.mark.parametrize("case", [*BEFORE_THE_LOCK, *UNDER_THE_LOCK], ids=str)
def test_a_machine_that_slept_past_the_timeout_writes_nothing_and_another_goes_on(
    world: ProcessWorld, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    """Nobody has taken the row yet; the wrapper can't know, so it leaves as if somebody had."""
    slept = [0.0]
    counted = partial(Heartbeat, elapsed=lambda: clock.suspended_seconds() + slept[0])
    monkeypatch.setattr("evolution.wrapper.Heartbeat", counted)

    def sleep() -> None:
        slept[0] = 3600.0

    row, start = case.begin(world)
    pid = start(At((case.step,), sleep))
    assert exit_code(pid) == 0
    left = fresh(row)
    assert left.status in ("running", "syncing", "rolling_back"), "no end was written"
    assert tick() == [0]
    assert fresh(row).attempts == left.attempts + 1
    case.has_ended_well(world, row)


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_clock_that_jumped_neither_doubles_nor_strands_a_row(
    world: ProcessWorld, stopped: list[int], hours: int
) -> None:
    """Forward, a wrapper at work looks stale: it is ended before another begins. Back, nothing looks stale."""
    row, pid = begun(Case("apply", f"exchange:{AGENT_FILE}"), world, stopped)
    jumped = database_now() + timedelta(hours=hours)
    codes = tick(now=jumped)
    if hours < 0:
        assert codes == [], "it is at work"
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert tick(now=jumped) == [0], "gone is gone, whatever the clock says"
    else:
        assert codes == [0]
        assert exit_code(pid) == KILLED
    assert (fresh(row).status, fresh(row).attempts) == ("applied", 2)
    assert world.surface() == NEW


# -- budgets


def spend(step: Step, *, times: int) -> None:
    for _ in range(times):
        codes = tick(step)
        assert codes == [KILLED], codes


def test_a_run_whose_tries_are_spent_times_out_and_can_be_retried(world: ProcessWorld) -> None:
    run = world.pending()
    spend(At(("score",), die), times=3)
    assert tick() == []
    run = fresh(run)
    assert (run.status, run.attempts) == ("timeout", 3)
    assert "is gone while control; no tries left after 3" in run.failure_reason


def test_an_apply_whose_tries_are_spent_before_the_checkpoint_touched_nothing(world: ProcessWorld) -> None:
    apply = world.approved()
    spend(At(("checkpoint",), die), times=3)
    assert tick() == []
    assert fresh(apply).status == "timeout"
    assert EvolutionRun.objects.get().status == "approved", "a reviewer's apply leaves it so"
    assert world.surface() == OLD
    assert not world.marker_stands


def test_tries_are_counted_anew_from_the_checkpoint_then_the_old_surface_comes_back(
    world: ProcessWorld,
) -> None:
    apply = world.approved()
    spend(At(("merge",), die), times=2)
    spend(At(("unmark",), die), times=1)
    assert (fresh(apply).status, fresh(apply).round_attempts) == ("syncing", 0)
    spend(At(("unmark",), die), times=3)
    assert fresh(apply).phase == "publishing"
    assert tick() == [0], "restored by a wrapper of its own"
    apply = fresh(apply)
    assert apply.status == "failed"
    assert "no tries left after 3" in apply.failure_reason
    assert world.surface() == OLD
    assert EvolutionRun.objects.get().status == "approved"


@pytest.mark.parametrize("verb", ["apply", "rollback"])
def test_what_no_machine_finishes_waits_for_a_person_who_sends_it_on(world: ProcessWorld, verb: str) -> None:
    operator = make_user("olga", "review")
    always = At(("mark",), die, once=False)
    if verb == "apply":
        apply = world.approved()
        spend(always, times=1 + 3 + 3)
    else:
        apply = world.applied()
        assert fork_wrapper(world.begin_rollback(apply), step=always) == KILLED
        spend(always, times=2)
    assert tick(always) == []
    apply = fresh(apply)
    assert apply.status == ("syncing" if verb == "apply" else "rolling_back")
    assert apply.needs_person is not None
    assert {file["rel"] for file in apply.needs_person["files"]} == set(NEW)
    assert tick() == [], "no machine goes on by itself"

    try_again(apply_id=apply.pk, user=operator, now=database_now())
    assert tick() == [0]
    apply = fresh(apply)
    assert apply.status == ("failed" if verb == "apply" else "rolled_back")
    assert apply.needs_person is None
    assert world.surface() == OLD
    assert not world.marker_stands


def test_a_wrapper_that_cannot_be_started_again_has_spent_a_try(world: ProcessWorld) -> None:
    """A fresh row fails with the reason; one after its checkpoint keeps its status and is tried again."""
    from evolution.spawn import SpawnFailed

    apply = world.approved()
    spend(At(("syncing",), die), times=1)

    def no_memory(order: Order) -> None:
        raise SpawnFailed("no memory")

    report = ticker.tick(spawn=no_memory)
    assert [order.attempt for order in report.failed] == [2]
    apply = fresh(apply)
    assert (apply.status, apply.round_attempts, apply.failure_reason) == ("syncing", 1, "no memory")
    later = database_now() + timedelta(seconds=31)
    assert tick(now=later) == [0]
    assert (fresh(apply).status, fresh(apply).attempts) == ("applied", 3)
