"""The ticker on rows: what it takes, what it leaves, what it does with wrappers that are gone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.db.models import process_values
from core.ids import new_row_id
from core.processes import ProcessIdentity
from evolution import manifest, transitions
from evolution.claim import Claim, Observed
from evolution.limits import Limits
from evolution.manifest import Manifest, ManifestFile
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order, SpawnFailed
from evolution.states import ApplyStatus, RunStatus
from evolution.ticker import TickReport, tick
from tests.evolution.rows import START, Rows, fresh, minutes

LIMITS = Limits()


class Wrappers:
    """Stands for the processes: remembers what was ordered."""

    def __init__(self, *, fails: bool = False) -> None:
        self.orders: list[Order] = []
        self.fails = fails

    def __call__(self, order: Order) -> None:
        if self.fails:
            raise SpawnFailed("The wrapper could not be started: out of memory")
        self.orders.append(order)


def ticked(*, at: timedelta = timedelta(0), limits: Limits = LIMITS, fails: bool = False) -> TickReport:
    return tick(now=START + at, limits=limits, spawn=Wrappers(fails=fails))


def at_work(claim: Claim, process: ProcessIdentity | None = None) -> None:
    transitions.write_process(claim, process=process or ProcessIdentity.current(), now=START)


@pytest.fixture
def gone() -> ProcessIdentity:
    """A process that has ended and was waited for."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        identity = ProcessIdentity.of(process.pid)
        process.kill()
    assert identity is not None
    return identity


@pytest.fixture
def stopped() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives and does nothing, not even end when it is asked to."""
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        os.kill(process.pid, signal.SIGSTOP)
        yield process
        process.kill()


class TestClaims:
    def test_the_oldest_run_up_to_the_limit(self, rows: Rows) -> None:
        runs = [rows.pending() for _ in range(3)]
        report = ticked(limits=Limits(max_concurrent_run=2))
        assert report.started == (Order("run", runs[0].pk, 1), Order("run", runs[1].pk, 1))
        assert [fresh(run).status for run in runs] == ["running", "running", "pending"]
        assert ticked(limits=Limits(max_concurrent_run=2)).started == ()

    def test_only_on_its_own_host(self, rows: Rows, tmp_path: Path) -> None:
        elsewhere = Rows.make(tmp_path, host="other-machine", name="elsewhere")
        run, apply = elsewhere.pending(), elsewhere.approved()
        assert ticked() == TickReport()
        assert (fresh(run).status, fresh(apply).status) == ("pending", "pending")

    def test_an_apply_of_a_busy_workspace_is_passed_over(self, rows: Rows, tmp_path: Path) -> None:
        other = Rows.make(tmp_path, name="other")
        rows.running_apply()
        waiting, free = rows.approved(), other.approved()
        report = ticked(limits=Limits(max_concurrent_apply=3))
        assert report.started == (Order("apply", free.pk, 1),)
        assert fresh(waiting).status == ApplyStatus.PENDING

    def test_one_apply_per_workspace_in_one_pass(self, rows: Rows) -> None:
        first, second = rows.approved(), rows.approved()
        assert ticked(limits=Limits(max_concurrent_apply=5)).started == (Order("apply", first.pk, 1),)
        assert fresh(second).status == ApplyStatus.PENDING

    def test_syncing_counts_as_a_taken_slot_and_a_rollback_does_not(self, rows: Rows, tmp_path: Path) -> None:
        other, third = Rows.make(tmp_path, name="other"), Rows.make(tmp_path, name="third")
        rows.rolling_back()
        _, claim = other.syncing()
        waiting = third.approved()
        assert ticked().started == ()
        transitions.finish_apply(claim, now=START)
        assert ticked().started == (Order("apply", waiting.pk, 1),)

    def test_a_wrapper_that_cannot_start_fails_its_row(self, rows: Rows) -> None:
        run, apply = rows.pending(), rows.auto_approved()
        report = ticked(fails=True)
        assert len(report.failed) == 2
        assert fresh(run).status == RunStatus.FAILED
        assert "out of memory" in fresh(run).failure_reason
        assert fresh(apply).status == ApplyStatus.FAILED
        assert EvolutionRun.objects.exclude(pk=run.pk).get().status == RunStatus.AWAITING_REVIEW

    @pytest.mark.parametrize("mount_point_stays", [False, True])
    def test_a_missing_workspace_fails_its_row(self, rows: Rows, mount_point_stays: bool) -> None:
        run = rows.pending()
        rows.workspace.paths.halo.rmdir()
        if not mount_point_stays:
            rows.workspace.paths.root.rmdir()
        ticked()
        assert (fresh(run).status, fresh(run).failure_reason) == (RunStatus.FAILED, "workspace_missing")

    def test_a_run_cancelled_before_its_wrapper_failed_to_start_stays_cancelled(self, rows: Rows) -> None:
        run = rows.pending()

        def cancel_and_fail(_order: Order) -> None:
            transitions.cancel_run(run_id=run.pk, user=rows.user, now=START)
            raise SpawnFailed("no")

        tick(now=START, limits=LIMITS, spawn=cancel_and_fail)
        assert fresh(run).status == RunStatus.CANCELLED


class TestStale:
    def test_an_old_heartbeat_goes_back_and_on(self, rows: Rows) -> None:
        run, claim = rows.claimed()
        at_work(claim, ProcessIdentity("other-machine", "boot", 1, 1))
        assert ticked(at=minutes(12)).settled == ()
        assert fresh(run).attempts == 1
        report = ticked(at=minutes(12) + timedelta(seconds=1))
        assert (report.settled, report.started) == ((run.pk,), (Order("run", run.pk, 2),))

    def test_without_a_heartbeat_the_start_counts(self, rows: Rows) -> None:
        run, _ = rows.claimed()
        EvolutionRun.objects.update(
            heartbeat_at=None, **process_values(ProcessIdentity("other-machine", "boot", 1, 1))
        )
        assert ticked(at=minutes(11)).settled == ()
        assert ticked(at=minutes(13)).settled == (run.pk,)

    def test_a_wrapper_that_is_gone_is_seen_at_once(self, rows: Rows, gone: ProcessIdentity) -> None:
        run, claim = rows.claimed()
        at_work(claim, gone)
        assert ticked().started == (Order("run", run.pk, 2),)

    def test_a_reused_pid_is_not_the_wrapper(self, rows: Rows) -> None:
        run, claim = rows.claimed()
        mine = ProcessIdentity.current()
        at_work(claim, ProcessIdentity(mine.host, mine.boot_id, mine.pid, mine.start_time - 1))
        assert ticked().settled == (run.pk,)

    def test_another_boot_is_another_process(self, rows: Rows) -> None:
        run, claim = rows.claimed()
        mine = ProcessIdentity.current()
        at_work(claim, ProcessIdentity(mine.host, "earlier-boot", mine.pid, mine.start_time))
        assert ticked().settled == (run.pk,)

    def test_a_claim_that_never_reported(self, rows: Rows) -> None:
        run, _ = rows.claimed()
        assert ticked(at=timedelta(seconds=30)).settled == ()
        assert ticked(at=timedelta(seconds=31)).settled == (run.pk,)

    def test_one_that_works_is_left_alone(self, rows: Rows) -> None:
        run, claim = rows.claimed()
        at_work(claim)
        assert ticked(at=minutes(11)) == TickReport()
        assert fresh(run).attempts == 1

    def test_one_that_hangs_is_ended_first(self, rows: Rows, stopped: subprocess.Popen[bytes]) -> None:
        run, claim = rows.claimed()
        at_work(claim, ProcessIdentity.of(stopped.pid))
        assert ticked(at=minutes(13)).settled == (run.pk,)
        assert stopped.wait(timeout=60) == -signal.SIGKILL

    def test_one_that_may_not_be_ended_holds_nobody_up(
        self, rows: Rows, stopped: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another user's wrapper (somebody ran the command as root): its claim is lost, whatever it does then."""

        def refuse(*_given: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        run, claim = rows.claimed()
        at_work(claim, ProcessIdentity.of(stopped.pid))
        other = rows.pending()
        monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
        report = ticked(at=minutes(13), limits=Limits(max_concurrent_run=2))
        assert report.settled == (run.pk,)
        assert report.started == (Order("run", run.pk, 2), Order("run", other.pk, 1))

    def test_tries_are_spent(self, rows: Rows) -> None:
        run = rows.pending()
        for attempt in range(3):
            at = minutes(attempt)
            assert ticked(at=at).started == (Order("run", run.pk, attempt + 1),)
        report = ticked(at=minutes(3))
        assert (report.started, report.settled) == ((), (run.pk,))
        run = fresh(run)
        assert (run.status, run.attempts) == (RunStatus.TIMEOUT, 3)
        assert run.failure_reason == "its wrapper never reported; no tries left after 3"

    def test_one_that_never_reported_is_found_though_the_clock_was_set_back(self, rows: Rows) -> None:
        run, apply = rows.pending(), rows.approved()
        assert len(ticked(at=timedelta(days=300)).started) == 2
        assert ticked(at=timedelta(days=300, seconds=-20)) == TickReport()
        again = (Order("run", run.pk, 2), Order("apply", apply.pk, 2))
        assert ticked().started == again

    @pytest.mark.parametrize("beaten", [True, False], ids=["after a heartbeat", "with its start alone"])
    @pytest.mark.parametrize(("kind", "timeout"), [("run", minutes(12)), ("apply", minutes(5))])
    def test_one_that_stopped_is_found_a_timeout_after_the_clock_was_set_back(
        self, rows: Rows, stopped: subprocess.Popen[bytes], kind: str, timeout: timedelta, beaten: bool
    ) -> None:
        """Not a year later, when the clock has caught up with its last sign of life."""
        row, claim = rows.claimed() if kind == "run" else rows.running_apply()
        at_work(claim, ProcessIdentity.of(stopped.pid))
        a_year_ahead = START + timedelta(days=365)
        claim.rows().update(heartbeat_at=a_year_ahead if beaten else None, started_at=a_year_ahead)

        assert ticked(at=minutes(1)) == TickReport()
        assert fresh(row).heartbeat_at == START + minutes(1), "from now on it ages"
        assert ticked(at=minutes(1) + timeout) == TickReport()
        assert ticked(at=minutes(1.1) + timeout).settled == (row.pk,)
        assert stopped.wait(timeout=60) == -signal.SIGKILL

    def test_one_that_beats_after_the_clock_was_set_back_is_left_alone(self, rows: Rows) -> None:
        run, claim = rows.claimed()
        at_work(claim)
        EvolutionRun.objects.update(heartbeat_at=START + timedelta(hours=5))
        assert ticked() == TickReport()
        assert transitions.beat(claim, now=START + minutes(11))
        assert ticked(at=minutes(20)) == TickReport()
        assert fresh(run).heartbeat_at == START + minutes(11)

    def test_a_heartbeat_that_comes_while_the_ticker_looks_is_kept(self, rows: Rows) -> None:
        _, claim = rows.claimed()
        EvolutionRun.objects.update(heartbeat_at=START + timedelta(hours=5))
        looked = Observed.of(EvolutionRun.objects.get())
        assert transitions.beat(claim, now=START + minutes(1))
        assert not transitions.beat_at(looked, now=START)
        assert EvolutionRun.objects.get().heartbeat_at == START + minutes(1)

    def test_a_reason_left_by_the_last_try_is_told(self, rows: Rows, gone: ProcessIdentity) -> None:
        apply, claim = rows.running_apply()
        at_work(claim, gone)
        transitions.leave_reason(claim, reason="lock_held:77")
        ticked(limits=Limits(max_attempts=1))
        assert fresh(apply).status == ApplyStatus.TIMEOUT
        assert fresh(apply).failure_reason.startswith("lock_held:77; its wrapper (process")

    def test_a_later_round_has_tries_of_its_own(self, rows: Rows) -> None:
        run = rows.in_review()
        transitions.retry(
            run_id=run.pk, source=RunStatus.AWAITING_REVIEW, attempt=1, hint="", user=rows.user, now=START
        )
        limits = Limits(max_attempts=1)
        assert ticked(limits=limits).started == (Order("run", run.pk, 2),)
        ticked(at=minutes(1), limits=limits)
        assert fresh(run).status == RunStatus.TIMEOUT


class TestHalfWay:
    """Syncing and rolling back: nobody lets go of a touched surface."""

    def crash(self, apply: EvolutionApply, tries: int, limits: Limits = LIMITS) -> list[Order]:
        """Let every attempt die without a word; the orders that were given meanwhile."""
        orders: list[Order] = []
        for _ in range(tries):
            later = fresh(apply).started_at - START + minutes(1)
            orders += [order for order in ticked(at=later, limits=limits).started if order.row_id == apply.pk]
        return orders

    def test_syncing_is_resumed_then_restored_then_waits_for_a_person(self, rows: Rows) -> None:
        apply, _ = rows.syncing()
        run = EvolutionRun.objects.get()
        orders = self.crash(apply, 3)
        assert [order.attempt for order in orders] == [2, 3, 4]
        assert fresh(apply).phase == "publishing"

        orders = self.crash(apply, 1)
        apply = fresh(apply)
        assert (apply.status, apply.phase) == (ApplyStatus.SYNCING, transitions.RESTORING)
        assert (apply.attempts, apply.round_attempts) == (5, 1)
        self.crash(apply, 3)
        apply = fresh(apply)
        assert apply.needs_person is not None
        assert (apply.status, fresh(run).status) == (ApplyStatus.SYNCING, RunStatus.APPROVED)
        assert self.crash(apply, 2) == [], "no machine goes on"

    def test_a_rollback_is_resumed_then_waits_for_a_person(self, rows: Rows) -> None:
        apply, _ = rows.rolling_back()
        orders = self.crash(apply, 2)
        assert [(order.verb, order.attempt) for order in orders] == [("rollback", 3), ("rollback", 4)]
        assert self.crash(apply, 1) == []
        assert fresh(apply).needs_person is not None
        assert fresh(apply).status == ApplyStatus.ROLLING_BACK

    def test_who_waits_for_a_person_frees_the_slot_and_keeps_the_workspace(
        self, rows: Rows, tmp_path: Path
    ) -> None:
        apply, _ = rows.syncing()
        other = Rows.make(tmp_path, name="other")
        here, there = rows.approved(), other.approved()
        self.crash(apply, 7)
        assert fresh(apply).needs_person is not None
        assert fresh(there).attempts > 0, "the slot went to the other workspace"
        assert fresh(here).attempts == 0

    def test_try_again_waits_for_a_slot_and_goes_the_same_way(self, rows: Rows, tmp_path: Path) -> None:
        apply, _ = rows.syncing()
        self.crash(apply, 7)
        _, busy = Rows.make(tmp_path, name="other").syncing()
        at_work(busy)
        transitions.try_again(apply_id=apply.pk, user=rows.user, now=START)
        assert ticked().started == ()
        assert fresh(apply).needs_person is None
        transitions.finish_apply(busy, now=START)
        attempts = fresh(apply).attempts
        assert ticked().started == (Order("apply", apply.pk, attempts + 1),)
        apply = fresh(apply)
        assert (apply.phase, apply.round_attempts) == (transitions.RESTORING, 1)

    def test_a_resume_that_cannot_start_has_spent_a_try(self, rows: Rows) -> None:
        apply, _ = rows.syncing()
        report = ticked(at=minutes(1), fails=True)
        assert report.failed == (Order("apply", apply.pk, 2),)
        apply = fresh(apply)
        assert (apply.status, apply.attempts) == (ApplyStatus.SYNCING, 2)
        assert "out of memory" in apply.failure_reason

    def test_the_account_names_the_files(self, rows: Rows) -> None:
        apply, _ = rows.syncing()
        self.crash(apply, 7)
        account: dict[str, Any] = fresh(apply).needs_person
        assert "no tries left" in account["reason"]
        assert "MANIFEST.json" in account["unreadable"], "there is no snapshot in this test"

    def test_a_pipe_in_the_place_of_a_file_does_not_hold_the_ticker_up(self, rows: Rows) -> None:
        """The account is made under the lock of all tickers: opening the pipe would have waited for ever."""
        apply, claim = rows.syncing()
        paths = rows.workspace.paths
        snapshot = paths.evolution.snapshot(apply.pk, claim.attempt)
        snapshot.mkdir(parents=True)
        file = ManifestFile("INSTRUCTIONS.md", "overwrite", before="a" * 64, after="b" * 64)
        gone = ManifestFile("INDEX.md", "overwrite", before="a" * 64, after="b" * 64)
        manifest.write(snapshot, Manifest(apply.pk, (), "2026-03-01T12:00:00.000Z", (file, gone), ()))
        os.mkfifo(paths.halo / "INSTRUCTIONS.md")
        self.crash(apply, 7)
        assert fresh(apply).needs_person["files"] == [
            {"rel": "INSTRUCTIONS.md", "state": "other"},
            {"rel": "INDEX.md", "state": "missing"},
        ]


def test_a_pass_over_many_finished_rows_is_cheap(rows: Rows) -> None:
    """quality.md: few queries, and none that reads the table through."""
    values = {
        "workspace": rows.workspace,
        "agent_id": "writer",
        "trigger_kind": "note",
        "source_access": "full",
        "created_at": START,
    }
    EvolutionRun.objects.bulk_create(
        EvolutionRun(id=new_row_id(), source_session_id=f"s{number}", status="rejected", **values)
        for number in range(500)
    )
    with CaptureQueriesContext(connection) as queries:
        ticked()
    assert len(queries) <= 2
    if connection.vendor != "sqlite":
        return  # PostgreSQL plans by table size, which a test's tables don't have
    rows.pending()
    rows.approved()
    with CaptureQueriesContext(connection) as queries:
        ticked()
    with connection.cursor() as cursor:
        for sql in (query["sql"] for query in queries):
            if sql.startswith("SELECT") and "evolution_" in sql:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plan = "; ".join(row[3] for row in cursor.fetchall())
                assert "SCAN evolution_evolution" not in plan, (sql, plan)
