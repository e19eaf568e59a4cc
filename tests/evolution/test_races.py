"""Two ticks, two reviewers, two wrappers at once: processes, on whatever database the suite runs on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from core.db.clock import database_now
from core.db.models import Event
from evolution import transitions
from evolution.claim import Claim, RunSeen
from evolution.errors import ClaimLost, Refused
from evolution.limits import Limits
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order
from evolution.ticker import tick, ticker_lock
from tests.evolution.process_world import ProcessWorld, start_wrapper
from tests.evolution.rows import Rows, fresh, seen

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

PROCESSES = 4
WON, LOST = 0, 1


def at_once(*tasks: Callable[[], object]) -> list[int]:
    """Run each task in a process of its own, all let go at the same moment: WON, or LOST when Refused."""
    connections.close_all()
    gate_read, gate_write = os.pipe()
    pids = [_started(task, gate_read, gate_write) for task in tasks]
    os.close(gate_read)
    os.close(gate_write)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def _started(task: Callable[[], object], gate_read: int, gate_write: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.close(gate_write)
        database_now()  # connected before the start
        os.read(gate_read, 1)
        task()
        code = WON
    except Refused:
        code = LOST
    finally:
        os._exit(code)


def claims() -> list[tuple[str, int]]:
    """(row, attempt) of every claim that was made."""
    events = Event.objects.filter(payload__to="running")
    return sorted((event.object_id, event.payload["attempt"]) for event in events)


def test_ticks_at_once_claim_each_row_once(tmp_path: Path) -> None:
    rows = [Rows.make(tmp_path, name=f"ws-{number}") for number in range(3)]
    runs = [place.pending() for place in rows for _ in range(2)]
    applies = [place.approved([place.in_review()]) for place in rows for _ in range(2)]
    Event.objects.all().delete()
    limits = Limits(max_concurrent_run=4, max_concurrent_apply=2)
    orders = tmp_path / "orders"
    orders.mkdir()

    def spawn(order: Order) -> None:
        (orders / f"{order.row_id}-{order.attempt}").touch(exist_ok=False)

    codes = at_once(*[lambda: tick(limits=limits, spawn=spawn) for _ in range(PROCESSES)])

    assert codes == [WON] * PROCESSES
    assert claims() == sorted([(run.pk, 1) for run in runs[:4]] + [(applies[0].pk, 1), (applies[2].pk, 1)])
    assert len(list(orders.iterdir())) == 6, "each claim started one wrapper"


def test_ticks_at_once_resume_a_crashed_apply_once(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    apply, _ = rows.syncing()  # claimed long ago, and nobody reported since
    assert at_once(*[lambda: tick(spawn=lambda order: None) for _ in range(PROCESSES)]) == [WON] * PROCESSES
    assert fresh(apply).attempts == 2


def test_one_of_two_reviewers_decides(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    for _ in range(5):
        run = rows.in_review()
        view, workspace = seen(run), rows.workspace.pk

        def approve(view: RunSeen = view, workspace: int = workspace) -> None:
            transitions.approve(runs=[view], workspace_id=workspace, user=rows.user, now=database_now())

        def reject(view: RunSeen = view) -> None:
            transitions.reject(run=view, user=rows.user, reason="no", now=database_now())

        codes = at_once(approve, approve, reject, reject)
        assert sorted(codes) == [WON, LOST, LOST, LOST]
        run = fresh(run)
        applies = EvolutionApply.objects.filter(source_runs=run)
        assert run.status == ("rejected" if WON in codes[2:] else "approved")
        assert applies.count() == (run.status == "approved"), "an apply for each approval, and no other"


def test_overlapping_approvals_take_all_or_none(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    runs = [rows.in_review() for _ in range(4)]

    def approve(picked: list[EvolutionRun]) -> Callable[[], object]:
        views = [seen(run) for run in picked]
        return lambda: transitions.approve(
            runs=views, workspace_id=rows.workspace.pk, user=rows.user, now=database_now()
        )

    codes = at_once(approve(runs[:3]), approve(runs[:0:-1]), approve([runs[3], runs[0]]))
    assert codes.count(WON) == 1
    for apply in EvolutionApply.objects.all():
        assert all(run.current_apply == apply for run in apply.source_runs.all())


def test_a_cancel_and_a_checkpoint_at_once(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    for number in range(5):
        place = Rows.make(tmp_path, name=f"ws-{number}")
        apply, claim = place.running_apply()

        def cancel(apply_id: str = apply.pk) -> None:
            transitions.cancel_apply(apply_id=apply_id, user=rows.user, now=database_now())

        def go_on(claim: Claim = claim) -> None:
            try:
                transitions.checkpoint(claim, now=database_now())
            except ClaimLost as lost:
                raise Refused("lost", str(lost)) from lost

        codes = at_once(cancel, go_on)
        assert sorted(codes) == [WON, LOST]
        assert fresh(apply).status == ("cancelled" if codes[0] == WON else "syncing")


def test_one_of_two_rollbacks_begins(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    apply = rows.applied()

    def begin() -> None:
        with ticker_lock():
            transitions.begin_rollback(
                apply_id=apply.pk, attempts=1, user=rows.user, force=False, seen=[], now=database_now()
            )

    assert sorted(at_once(begin, begin, begin)) == [WON, LOST, LOST]
    assert fresh(apply).attempts == 2


def test_two_wrappers_of_one_row(tmp_path: Path) -> None:
    """The replaced one still runs when its successor starts: only the successor's work counts."""
    world = ProcessWorld.make(tmp_path, "ws")
    apply = world.approved()
    tick(spawn=lambda order: None)
    first = Order("apply", apply.pk, 1)
    EvolutionApply.objects.update(started_at=world.rows.now, heartbeat_at=world.rows.now)
    tick(spawn=lambda order: None)
    assert fresh(apply).attempts == 2
    pids = [start_wrapper(order) for order in (first, Order("apply", apply.pk, 2))]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0]
    apply = fresh(apply)
    assert (apply.status, apply.snapshot_attempt) == ("applied", 2)
    assert not world.paths.evolution.apply_attempt(apply.pk, 1).exists(), "a replaced wrapper writes nothing"
