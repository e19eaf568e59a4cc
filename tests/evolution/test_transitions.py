"""Invariant 1: statuses move by the table, by a conditional update, together with their event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from core.db.models import Event
from core.db.transitions import UnknownMoveError, move
from core.processes import ProcessIdentity
from evolution import transitions
from evolution.claim import Claim, Observed, RunSeen
from evolution.errors import ClaimLost, Refused
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_MOVES, RUN_MOVES, ApplyStatus, RunStatus
from tests.evolution.rows import SCORE, START, Rows, fresh, minutes, refused, seen


def everything() -> list[Any]:
    """All that a refused move must leave as it was."""
    return [
        *EvolutionRun.objects.order_by("id").values(),
        *EvolutionApply.objects.order_by("id").values(),
        *Event.objects.order_by("id").values_list("id"),
    ]


def last_event() -> Event:
    event = Event.objects.order_by("id").last()
    assert event is not None
    return event


def test_a_run_goes_all_the_way_and_back(rows: Rows) -> None:
    apply, claim = rows.rolling_back()
    run = EvolutionRun.objects.get()
    assert (run.status, run.current_apply_id) == (RunStatus.APPLIED, apply.pk)

    assert transitions.finish_rollback(claim, outcome={"restored": ["INDEX.md"]}, now=START) == [run.pk]

    assert fresh(run).status == RunStatus.ROLLED_BACK
    assert fresh(apply).status == ApplyStatus.ROLLED_BACK
    assert fresh(apply).rolled_back_by == rows.user
    moves = [(event.payload["from"], event.payload["to"]) for event in Event.objects.order_by("id")]
    assert moves == [
        ("pending", "running"),
        ("running", "awaiting_review"),
        ("awaiting_review", "approved"),
        ("pending", "running"),
        ("running", "syncing"),
        ("syncing", "applied"),
        ("approved", "applied"),
        ("applied", "rolling_back"),
        ("rolling_back", "rolled_back"),
        ("applied", "rolled_back"),
    ]


def test_a_move_outside_the_table_is_a_programming_error(rows: Rows) -> None:
    run = rows.pending()
    before = everything()
    with pytest.raises(UnknownMoveError):
        move(
            EvolutionRun.objects.all(),
            row_id=run.pk,
            source="pending",
            target="applied",
            moves=RUN_MOVES,
            event_kind="evolution:run_changed",
            values={},
            now=START,
        )
    assert everything() == before


def test_an_event_that_cannot_be_written_takes_the_move_back(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rows.pending()

    def broken(**_values: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("core.db.transitions.record_event", broken)
    with pytest.raises(OSError, match="no space"):
        transitions.claim_run(run_id=run.pk, attempts=0, now=START)
    assert fresh(run).status == RunStatus.PENDING
    assert fresh(run).attempts == 0


def test_the_tables_name_only_known_statuses() -> None:
    assert {status for pair in RUN_MOVES for status in pair} == set(RunStatus)
    assert {status for pair in APPLY_MOVES for status in pair} == set(ApplyStatus)


def test_a_claim_is_won_once(rows: Rows) -> None:
    run = rows.pending(failure_reason="old")
    assert transitions.claim_run(run_id=run.pk, attempts=0, now=START) is not None
    before = everything()
    assert transitions.claim_run(run_id=run.pk, attempts=0, now=START) is None
    assert everything() == before
    assert (fresh(run).attempts, fresh(run).started_at, fresh(run).failure_reason) == (1, START, "")
    assert fresh(run).process is None


WRAPPER_MOVES: dict[str, Callable[[Claim], object]] = {
    "skip": lambda claim: transitions.skip_run(claim, reason="nothing to change", now=START),
    "fail": lambda claim: transitions.fail_run(claim, reason="patch.md is missing", now=START),
    "review": lambda claim: transitions.await_review(
        claim, score=SCORE, auto_reason="level", has_observation=False, now=START
    ),
    "gates": lambda claim: transitions.pass_gates(
        claim, score=SCORE, auto_reason="", has_observation=False, now=START
    ),
    "phase": lambda claim: transitions.set_phase(claim, phase="score", now=START),
    "process": lambda claim: transitions.write_process(claim, process=ProcessIdentity.current(), now=START),
    "reason": lambda claim: transitions.leave_reason(claim, reason="lock_held:1"),
}


@pytest.mark.parametrize("name", WRAPPER_MOVES)
def test_a_replaced_wrapper_of_a_run_writes_nothing(rows: Rows, name: str) -> None:
    run, old = rows.claimed()
    assert transitions.requeue(Observed.of(run), now=START)
    assert transitions.claim_run(run_id=run.pk, attempts=1, now=START) is not None
    before = everything()
    with pytest.raises(ClaimLost):
        WRAPPER_MOVES[name](old)
    assert not transitions.beat(old, now=START + minutes(1))
    assert everything() == before


@pytest.mark.parametrize("name", WRAPPER_MOVES)
def test_a_cancelled_run_is_no_longer_its_wrappers(rows: Rows, name: str) -> None:
    run, claim = rows.claimed()
    transitions.cancel_run(run_id=run.pk, user=rows.user, now=START)
    before = everything()
    with pytest.raises(ClaimLost):
        WRAPPER_MOVES[name](claim)
    assert everything() == before
    assert fresh(run).decided_by == rows.user


def test_gates_approve_the_run_and_insert_its_apply_together(rows: Rows) -> None:
    apply = rows.auto_approved()
    run = EvolutionRun.objects.get()
    assert apply.is_auto
    assert (run.status, run.current_apply, run.decided_by) == (RunStatus.APPROVED, apply, None)
    assert list(apply.source_runs.all()) == [run]
    assert run.score_avg == 90.0


def test_a_beat_between_a_look_and_its_stale_move_wins(rows: Rows) -> None:
    run, claim = rows.claimed()
    looked = Observed.of(run)
    assert transitions.beat(claim, now=START + minutes(13))
    before = everything()
    assert not transitions.requeue(looked, now=START + minutes(13))
    assert not transitions.time_out_run(looked, reason="no heartbeat", now=START + minutes(13))
    assert everything() == before


def test_a_wrapper_that_reports_between_a_look_and_its_stale_move_wins(rows: Rows) -> None:
    run, claim = rows.claimed()
    looked = Observed.of(run)
    transitions.write_process(claim, process=ProcessIdentity.current(), now=run.heartbeat_at)
    assert not transitions.requeue(looked, now=START)
    assert fresh(run).status == RunStatus.RUNNING


def test_a_stale_run_goes_back_beside_a_newer_request_with_its_hint(rows: Rows) -> None:
    run, _ = rows.claimed(source_session_id="s", user_hint="shorter")
    rows.pending(source_session_id="s", user_hint="shorter")
    assert transitions.requeue(Observed.of(run), now=START)
    assert fresh(run).status == RunStatus.PENDING


class TestLongHints:
    """As long as a hint may be, of characters that nothing compresses: no index takes such a text."""

    HINT = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(4_000))

    def test_the_same_waits_once_and_another_beside_it(self, rows: Rows) -> None:
        rows.pending(source_session_id="s", user_hint=self.HINT)
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.pending(source_session_id="s", user_hint=self.HINT)
        rows.pending(source_session_id="s", user_hint=self.HINT[:-1])
        assert EvolutionRun.objects.count() == 2

    def test_a_retry_takes_one_unless_it_waits_already(self, rows: Rows) -> None:
        run, other = rows.failed(source_session_id="s"), rows.failed(source_session_id="s")
        given = {"source": RunStatus.FAILED, "attempt": 1, "hint": self.HINT, "user": rows.user, "now": START}
        transitions.retry(run_id=run.pk, **given)
        assert (fresh(run).status, fresh(run).user_hint) == ("pending", self.HINT)
        with refused("already_pending"):
            transitions.retry(run_id=other.pk, **given)
        assert (fresh(other).status, fresh(other).user_hint) == ("failed", "")


class TestApprove:
    def test_several_runs_into_one_apply(self, rows: Rows) -> None:
        runs = [rows.in_review(), rows.in_review()]
        apply = rows.approved(runs)
        assert set(apply.source_runs.all()) == set(runs)
        assert all(fresh(run).current_apply == apply for run in runs)
        assert all(fresh(run).decided_by == rows.user for run in runs)
        assert last_event().payload["by"] == rows.user.pk

    def test_all_or_none(self, rows: Rows) -> None:
        good, gone = rows.in_review(), rows.in_review()
        transitions.reject(run=seen(gone), user=rows.user, reason="no", now=START)
        before = everything()
        with pytest.raises(Refused) as refused:
            transitions.approve(
                runs=[RunSeen(good.pk, 1), RunSeen(gone.pk, 1)],
                workspace_id=rows.workspace.pk,
                user=rows.user,
                now=START,
            )
        assert refused.value.code == "changed"
        assert everything() == before

    def test_what_the_person_saw_decides(self, rows: Rows) -> None:
        """The page showed attempt 1; meanwhile somebody retried and a second attempt waits for review."""
        run = rows.in_review()
        shown = seen(run)
        transitions.retry(
            run_id=run.pk, source=RunStatus.AWAITING_REVIEW, attempt=1, hint="", user=rows.user, now=START
        )
        claim = transitions.claim_run(run_id=run.pk, attempts=1, now=START)
        assert claim is not None
        transitions.await_review(claim, score=SCORE, auto_reason="", has_observation=False, now=START)
        before = everything()
        for decide in (
            lambda: transitions.approve(
                runs=[shown], workspace_id=rows.workspace.pk, user=rows.user, now=START
            ),
            lambda: transitions.reject(run=shown, user=rows.user, reason="", now=START),
        ):
            with pytest.raises(Refused) as refused:
                decide()
            assert refused.value.code == "changed"
        assert everything() == before

    def test_not_from_another_workspace(self, rows: Rows, tmp_path: Any) -> None:
        other = Rows.make(tmp_path, name="other").in_review()
        before = everything()
        with pytest.raises(Refused):
            rows.approved([other])
        assert everything() == before

    def test_again_after_the_apply_failed(self, rows: Rows) -> None:
        apply, claim = rows.running_apply()
        run = EvolutionRun.objects.get()
        standing = seen(run)
        before = everything()
        with pytest.raises(Refused):  # its apply still works
            transitions.approve(runs=[standing], workspace_id=rows.workspace.pk, user=rows.user, now=START)
        assert everything() == before

        transitions.fail_apply(claim, reason="drift:INDEX.md", now=START)
        assert fresh(run).status == RunStatus.APPROVED
        again = transitions.approve(
            runs=[standing], workspace_id=rows.workspace.pk, user=rows.user, now=START
        )
        assert fresh(run).current_apply_id == again != apply.pk
        with pytest.raises(Refused):  # what was seen is the old apply
            transitions.approve(runs=[standing], workspace_id=rows.workspace.pk, user=rows.user, now=START)

    def test_given_up_after_the_apply_failed(self, rows: Rows) -> None:
        _, claim = rows.running_apply()
        transitions.fail_apply(claim, reason="drift:INDEX.md", now=START)
        run = EvolutionRun.objects.get()
        transitions.reject(run=seen(run), user=rows.user, reason="enough", now=START)
        assert (fresh(run).status, fresh(run).decision_reason) == (RunStatus.REJECTED, "enough")


class TestRetry:
    def test_starts_a_round_of_its_own(self, rows: Rows) -> None:
        run = rows.in_review()
        transitions.retry(
            run_id=run.pk,
            source=RunStatus.AWAITING_REVIEW,
            attempt=1,
            hint="be brief",
            user=rows.user,
            now=START,
        )
        run = fresh(run)
        assert (run.status, run.attempts, run.round_attempts) == (RunStatus.PENDING, 1, 0)
        assert (run.user_hint, run.score_avg, run.started_at) == ("be brief", None, None)

    def test_is_refused_beside_the_same_request(self, rows: Rows) -> None:
        run = rows.in_review(source_session_id="s")
        rows.pending(source_session_id="s")
        before = everything()
        with pytest.raises(Refused) as refused:
            transitions.retry(
                run_id=run.pk,
                source=RunStatus.AWAITING_REVIEW,
                attempt=1,
                hint="",
                user=rows.user,
                now=START,
            )
        assert refused.value.code == "already_pending"
        assert everything() == before

    def test_an_approved_run_only_after_its_apply_ended(self, rows: Rows) -> None:
        _, claim = rows.running_apply()
        run = EvolutionRun.objects.get()
        retry = {"run_id": run.pk, "source": RunStatus.APPROVED, "attempt": 1, "hint": ""}
        before = everything()
        with pytest.raises(Refused):
            transitions.retry(**retry, user=rows.user, now=START)
        assert everything() == before
        transitions.fail_apply(claim, reason="x", now=START)
        transitions.retry(**retry, user=rows.user, now=START)
        assert (fresh(run).status, fresh(run).current_apply) == (RunStatus.PENDING, None)


class TestAutoApply:
    """One that came to nothing sends its run back to the reviewers, in the same transaction."""

    def ended(self, rows: Rows, how: str) -> EvolutionRun:
        apply, claim = rows.running_apply(rows.auto_approved())
        if how == "failed":
            transitions.fail_apply(claim, reason="auto_recheck:level", now=START)
        elif how == "timeout":
            assert transitions.time_out_apply(Observed.of(apply), reason="gone", now=START)
        else:
            transitions.cancel_apply(apply_id=apply.pk, user=rows.user, now=START)
        assert fresh(apply).status == how
        return EvolutionRun.objects.get()

    @pytest.mark.parametrize("how", ["failed", "timeout", "cancelled"])
    def test_sends_its_run_back(self, rows: Rows, how: str) -> None:
        run = self.ended(rows, how)
        assert run.status == RunStatus.AWAITING_REVIEW
        rows.approved([run])

    def test_a_reviewers_apply_leaves_its_run_approved(self, rows: Rows) -> None:
        apply, _ = rows.running_apply()
        transitions.cancel_apply(apply_id=apply.pk, user=rows.user, now=START)
        assert EvolutionRun.objects.get().status == RunStatus.APPROVED


class TestCheckpoint:
    def test_counts_tries_anew_and_names_the_snapshot(self, rows: Rows) -> None:
        apply, _ = rows.syncing()
        assert (apply.snapshot_attempt, apply.attempts, apply.attempts_base) == (1, 1, 1)

    def test_cannot_be_cancelled_afterwards(self, rows: Rows) -> None:
        apply, _ = rows.syncing()
        before = everything()
        with pytest.raises(Refused) as refused:
            transitions.cancel_apply(apply_id=apply.pk, user=rows.user, now=START)
        assert refused.value.code == "not_cancellable"
        assert everything() == before

    def test_is_refused_to_a_cancelled_apply(self, rows: Rows) -> None:
        apply, claim = rows.running_apply()
        transitions.cancel_apply(apply_id=apply.pk, user=rows.user, now=START)
        before = everything()
        with pytest.raises(ClaimLost):
            transitions.checkpoint(claim, now=START)
        assert everything() == before

    def test_fails_only_once_the_old_surface_is_back(self, rows: Rows) -> None:
        apply, claim = rows.syncing()
        before = everything()
        with pytest.raises(ClaimLost):
            transitions.fail_apply(claim, reason="drift", now=START)
        assert everything() == before
        assert transitions.begin_restoring(claim, reason="drift:a", drifted=["a"], now=START)
        before = everything()
        assert not transitions.begin_restoring(claim, reason="again", drifted=[], now=START)
        with pytest.raises(ClaimLost):  # from now on nothing publishes
            transitions.finish_apply(claim, now=START)
        assert everything() == before
        transitions.fail_apply(claim, reason="drift:a", now=START)
        assert (fresh(apply).status, fresh(apply).drifted) == (ApplyStatus.FAILED, ["a"])


class TestRollback:
    def test_waits_for_other_applies_of_the_workspace(self, rows: Rows) -> None:
        applied, pending = rows.applied(), rows.approved()
        before = everything()
        with pytest.raises(Refused) as refused:
            transitions.begin_rollback(
                apply_id=applied.pk, attempts=1, user=rows.user, force=False, seen=[], now=START
            )
        assert refused.value.code == "apply_in_flight"
        assert refused.value.details["apply"] == pending.pk
        assert everything() == before

    def test_can_be_refused_while_planning_only(self, rows: Rows) -> None:
        _, claim = rows.rolling_back()
        transitions.set_phase(claim, phase="rolling_back", now=START)
        before = everything()
        with pytest.raises(ClaimLost):
            transitions.refuse_rollback(claim, code="conflict", details={}, now=START)
        assert everything() == before

    def test_a_refusal_says_so_on_the_row(self, rows: Rows) -> None:
        apply, claim = rows.rolling_back()
        transitions.refuse_rollback(claim, code="conflict", details={"files": ["a"]}, now=START)
        apply = fresh(apply)
        assert (apply.status, apply.failure_reason) == (ApplyStatus.APPLIED, "conflict")
        assert apply.rollback_outcome == {"refused": "conflict", "files": ["a"]}
        assert EvolutionRun.objects.get().status == RunStatus.APPLIED

    def test_one_of_two_wins(self, rows: Rows) -> None:
        apply, _ = rows.rolling_back()
        before = everything()
        with pytest.raises(Refused) as refused:
            transitions.begin_rollback(
                apply_id=apply.pk, attempts=1, user=rows.user, force=True, seen=[], now=START
            )
        assert refused.value.code == "not_applied"
        assert everything() == before


class TestNeedsPerson:
    def test_belongs_to_no_wrapper_until_a_person_says_so(self, rows: Rows) -> None:
        apply, claim = rows.syncing()
        account = {"reason": "disk full", "files": []}
        assert transitions.mark_needs_person(Observed.of(apply), account=account, now=START)
        before = everything()
        assert not transitions.is_held(claim)
        with pytest.raises(ClaimLost):
            transitions.finish_apply(claim, now=START)
        assert transitions.resume_apply(Observed.of(fresh(apply)), now=START) is None
        assert everything() == before

        transitions.try_again(apply_id=apply.pk, user=rows.user, now=START)
        apply = fresh(apply)
        assert (apply.status, apply.needs_person, apply.round_attempts) == ("syncing", None, 0)
        assert not transitions.is_held(claim), "a wrapper from before must not come back to life"
        with pytest.raises(Refused):
            transitions.try_again(apply_id=apply.pk, user=rows.user, now=START)

    def test_keeps_its_workspace(self, rows: Rows) -> None:
        apply, _ = rows.syncing()
        other = rows.approved()
        transitions.mark_needs_person(Observed.of(apply), account={"reason": "x"}, now=START)
        before = everything()
        assert transitions.claim_apply(apply_id=other.pk, attempts=0, now=START) is None
        assert everything() == before


class TestTextThatADatabaseRefuses:
    """NUL and lone surrogates come from models, files and terminals; the row must be able to say why it failed."""

    BAD, GOOD = "a\0b\ud800c", "a\ufffdb?c"

    def test_a_reason(self, rows: Rows) -> None:
        run, claim = rows.claimed()
        transitions.leave_reason(claim, reason=self.BAD)
        assert fresh(run).failure_reason == self.GOOD
        transitions.fail_run(claim, reason=self.BAD, now=START)
        assert (fresh(run).status, fresh(run).failure_reason) == (RunStatus.FAILED, self.GOOD)

    def test_a_cause_kept_as_json(self, rows: Rows) -> None:
        apply, claim = rows.syncing()
        assert transitions.begin_restoring(claim, reason=self.BAD, drifted=[self.BAD], now=START)
        assert (fresh(apply).progress, fresh(apply).drifted) == ({"cause": self.GOOD}, [self.GOOD])

    def test_a_reviewers_hint(self, rows: Rows) -> None:
        run = rows.in_review()
        apply_id = transitions.approve(
            runs=[seen(run)], workspace_id=rows.workspace.pk, user=rows.user, hint=self.BAD, now=START
        )
        assert EvolutionApply.objects.get(pk=apply_id).reviewer_hint == self.GOOD
        assert fresh(run).decision_reason == self.GOOD
