"""What people decide on runs: who may, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from django.contrib.auth.models import User

from core.db.models import Event
from core.paths import halo_home
from core.settings_file import Settings
from evolution import transitions
from evolution.approve import approve, seen_now
from evolution.cancel import cancel_apply, cancel_run
from evolution.claim import RunSeen
from evolution.heartbeat import Heartbeat
from evolution.job import Job
from evolution.models import EvolutionApply, EvolutionRun
from evolution.reject import reject
from evolution.retry import retry
from evolution.spawn import Order
from evolution.states import APPLY_FINAL, RunStatus
from tests.evolution.rows import SCORE, Rows, fresh, make_user, refused
from tests.evolution.rows import START as NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> User:
    return make_user("rita", "review", "rollback")


@pytest.fixture
def four_eyes() -> Iterator[None]:
    path = halo_home().settings_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("general:\n  evolution:\n    four_eyes: true\n")
    path.chmod(0o600)
    yield
    path.unlink()


def test_approving_several_runs_makes_one_apply_and_names_who_decided(rows: Rows, rita: User) -> None:
    runs = [rows.in_review(), rows.in_review()]

    apply = approve(runs=[seen_now(run) for run in reversed(runs)], user=rita, hint="only wording", now=NOW)

    assert apply.status == "pending"
    assert apply.approved_by == rita
    assert apply.reviewer_hint == "only wording"
    assert set(apply.source_runs.all()) == set(runs)
    for run in EvolutionRun.objects.all():
        assert (run.status, run.current_apply, run.decided_by, run.decided_at) == (
            "approved",
            apply,
            rita,
            NOW,
        )
    approvals = Event.objects.filter(kind="evolution:run_changed", payload__to="approved").order_by("id")
    assert [event.object_id for event in approvals] == sorted(run.pk for run in runs)


def test_several_runs_are_approved_all_or_none(rows: Rows, rita: User) -> None:
    runs = [rows.in_review(), rows.in_review()]
    seen = [seen_now(run) for run in runs]
    reject(run=seen[1], user=rita, reason="no", now=NOW)

    with refused("not_approvable"):
        approve(runs=seen, user=rita, now=NOW)


def test_runs_of_two_workspaces_are_not_approved_together(rows: Rows, rita: User, tmp_path: Path) -> None:
    other = Rows.make(tmp_path, name="other")
    seen = [seen_now(place.in_review()) for place in (rows, other)]

    with refused("several_workspaces"):
        approve(runs=seen, user=rita, now=NOW)


def test_a_decision_is_about_the_attempt_that_was_seen(rows: Rows, rita: User) -> None:
    run = rows.in_review()
    seen = seen_now(run)
    retry(run_id=run.pk, attempt=run.attempts, hint="again", user=rita, now=NOW)
    claim = transitions.claim_run(run_id=run.pk, attempts=run.attempts, now=NOW)
    assert claim is not None
    transitions.await_review(claim, score=SCORE, auto_reason="", has_observation=False, now=NOW)

    with refused("changed"):
        approve(runs=[seen], user=rita, now=NOW)
    with refused("changed"):
        reject(run=seen, user=rita, reason="no", now=NOW)
    with refused("changed"):
        retry(run_id=run.pk, attempt=seen.attempt, hint="x", user=rita, now=NOW)


def test_approving_again_after_the_apply_failed_makes_a_new_apply(rows: Rows, rita: User) -> None:
    run = rows.in_review()
    first = rows.failed_apply(rows.approved([run]))
    run.refresh_from_db()

    second = approve(runs=[seen_now(run)], user=rita, now=NOW)

    run.refresh_from_db()
    assert second.pk != first.pk
    assert (run.status, run.current_apply) == ("approved", second)


def test_two_people_who_saw_the_same_failed_apply_cannot_both_approve(rows: Rows, rita: User) -> None:
    run = rows.in_review()
    rows.failed_apply(rows.approved([run]))
    run.refresh_from_db()
    seen = seen_now(run)
    rows.failed_apply(approve(runs=[seen], user=rita, now=NOW))

    with refused("changed"):
        approve(runs=[seen], user=rita, now=NOW)


def test_a_run_whose_apply_is_at_work_is_not_approved_again(rows: Rows, rita: User) -> None:
    run = rows.in_review()
    rows.approved([run])
    run.refresh_from_db()

    with refused("not_approvable"):
        approve(runs=[seen_now(run)], user=rita, now=NOW)


@pytest.mark.usefixtures("four_eyes")
def test_with_four_eyes_whoever_asked_does_not_approve(rows: Rows, rita: User) -> None:
    own = rows.in_review(requested_by=rita)
    nobodys = rows.in_review()

    with refused("four_eyes"):
        approve(runs=[seen_now(own)], user=rita, now=NOW)
    with refused("four_eyes"):
        approve(runs=[seen_now(nobodys)], user=rita, now=NOW)

    karl = make_user("karl", "review")
    assert approve(runs=[seen_now(own)], user=karl, now=NOW).approved_by == karl


@pytest.mark.usefixtures("four_eyes")
def test_with_four_eyes_the_hint_in_force_is_its_givers_whatever_was_decided_since(
    rows: Rows, rita: User
) -> None:
    """Neither a retry that keeps it, nor a rejection, nor another's approval makes it someone else's."""
    karl = make_user("karl", "review")
    run = rows.in_review(requested_by=make_user("olga", "review"))

    def again(user: User, hint: str | None) -> EvolutionRun:
        now = fresh(run)
        retry(run_id=run.pk, attempt=now.attempts, hint=hint, user=user, now=NOW)
        claim = transitions.claim_run(run_id=run.pk, attempts=now.attempts, now=NOW)
        assert claim is not None
        transitions.await_review(claim, score=SCORE, auto_reason="", has_observation=False, now=NOW)
        return fresh(run)

    again(rita, "mine")
    for keeper in (rita, karl):
        kept = again(keeper, None)
        with refused("four_eyes"):
            approve(runs=[seen_now(kept)], user=rita, now=NOW)
    reject(run=seen_now(kept), user=karl, reason="no", now=NOW)
    kept = again(karl, None)
    with refused("four_eyes"):
        approve(runs=[seen_now(kept)], user=rita, now=NOW)
    rows.failed_apply(approve(runs=[seen_now(kept)], user=karl, now=NOW))
    with refused("four_eyes"):
        approve(runs=[seen_now(fresh(run))], user=rita, now=NOW)

    anew = again(karl, "karl's")
    with refused("four_eyes"):
        approve(runs=[seen_now(anew)], user=karl, now=NOW)
    assert approve(runs=[seen_now(anew)], user=rita, now=NOW).approved_by == rita


def test_without_four_eyes_whoever_asked_may_approve(rows: Rows, rita: User) -> None:
    run = rows.in_review(requested_by=rita)

    assert approve(runs=[seen_now(run)], user=rita, now=NOW).status == "pending"


def test_a_rejection_needs_a_reason_and_keeps_it(rows: Rows, rita: User) -> None:
    run = rows.in_review()

    with refused("reason_needed"):
        reject(run=seen_now(run), user=rita, reason="  ", now=NOW)
    reject(run=seen_now(run), user=rita, reason="Too broad.", now=NOW)

    run.refresh_from_db()
    assert (run.status, run.decided_by, run.decision_reason) == ("rejected", rita, "Too broad.")


def test_a_run_with_a_failed_apply_can_be_rejected(rows: Rows, rita: User) -> None:
    run = rows.in_review()
    rows.failed_apply(rows.approved([run]))
    run.refresh_from_db()

    reject(run=seen_now(run), user=rita, reason="It conflicts.", now=NOW)

    run.refresh_from_db()
    assert run.status == "rejected"


def test_retry_takes_a_new_hint_or_keeps_the_old_one(rows: Rows, rita: User) -> None:
    renamed = rows.failed(user_hint="old")
    kept = rows.failed(user_hint="old")

    retry(run_id=renamed.pk, attempt=renamed.attempts, hint=" new ", user=rita, now=NOW)
    retry(run_id=kept.pk, attempt=kept.attempts, hint=None, user=rita, now=NOW)

    for run, hint in ((renamed, "new"), (kept, "old")):
        run.refresh_from_db()
        assert (run.status, run.user_hint, run.round_attempts, run.attempts) == ("pending", hint, 0, 1)


def test_the_work_after_a_retry_is_about_the_new_hint(rows: Rows, rita: User) -> None:
    run = rows.failed(user_hint="old")
    retry(run_id=run.pk, attempt=run.attempts, hint="new", user=rita, now=NOW)

    order = Order("run", run.pk, run.attempts + 1)
    job = Job(order, fresh(run), cast(Heartbeat, None), None, Settings.load(halo_home()), lambda name: None)

    assert job.context().hint == "new"


def test_work_has_the_limits_of_the_workspaces_sessions(rows: Rows, tmp_path: Path) -> None:
    """The workspace's own settings before the machine's; what is global comes from there alone."""
    data = tmp_path / "data"
    values = {
        "limits": {"shell_timeout_sec": 30, "shell_output_bytes": 2048, "tool_result_chars": 900},
        "sandbox": {"allow": [str(data)], "memory_mb": 300, "processes": 40, "file_mb": 7},
    }
    own = {"limits": {"shell_timeout_sec": 9}, "sandbox": {"memory_mb": 9000}}
    for path, given in ((halo_home().settings_file, values), (rows.workspace.paths.settings_file, own)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"general": given}))
        path.chmod(0o600)
    settings = Settings.load(halo_home(), rows.workspace.paths)
    run = rows.pending()
    job = Job(Order("run", run.pk, 1), run, cast(Heartbeat, None), None, settings, lambda name: None)

    ctx = job.context()

    limits = ctx.limits
    assert (limits.shell_timeout_sec, limits.shell_output_bytes, limits.tool_result_chars) == (9, 2048, 900)
    assert (limits.sandbox_memory_mb, limits.sandbox_processes, limits.sandbox_file_mb) == (300, 40, 7)
    assert ctx.readable == (data,)


@pytest.mark.parametrize("what", ["retry", "approve", "reject"])
def test_words_too_long_for_a_brief_are_refused(rows: Rows, rita: User, what: str) -> None:
    run, words = rows.in_review(), "x" * 4001
    decide: dict[str, Callable[[], object]] = {
        "retry": lambda: retry(run_id=run.pk, attempt=run.attempts, hint=words, user=rita, now=NOW),
        "approve": lambda: approve(runs=[seen_now(run)], user=rita, hint=words, now=NOW),
        "reject": lambda: reject(run=seen_now(run), user=rita, reason=words, now=NOW),
    }
    with refused("reason_too_long" if what == "reject" else "hint_too_long"):
        decide[what]()
    assert fresh(run).status == "awaiting_review"


def test_retry_beside_the_same_request_still_waiting_is_refused(rows: Rows, rita: User) -> None:
    run = rows.failed(source_session_id="same", user_hint="short")
    rows.pending(source_session_id="same", user_hint="brief")

    with refused("already_pending"):
        retry(run_id=run.pk, attempt=run.attempts, hint="brief", user=rita, now=NOW)


def _applied(rows: Rows, rita: User) -> EvolutionRun:
    run = rows.in_review()
    rows.applied(rows.approved([run]))
    return run


def _at_work(rows: Rows, rita: User) -> EvolutionRun:
    run = rows.in_review()
    rows.approved([run])
    return run


@pytest.mark.parametrize("make", [_applied, _at_work, lambda rows, rita: rows.pending()])
def test_what_is_applied_or_at_work_is_not_retried(
    rows: Rows, rita: User, make: Callable[[Rows, User], EvolutionRun]
) -> None:
    run = make(rows, rita)
    run.refresh_from_db()

    with refused("not_retryable"):
        retry(run_id=run.pk, attempt=run.attempts, hint="x", user=rita, now=NOW)


def test_cancelling_a_pending_or_running_run(rows: Rows, rita: User) -> None:
    waiting, (running, _) = rows.pending(), rows.claimed()

    for run in (waiting, running):
        cancel_run(run_id=run.pk, user=rita, now=NOW)
        run.refresh_from_db()
        assert (run.status, run.decided_by) == ("cancelled", rita)


def test_an_apply_is_cancelled_before_its_checkpoint_only(rows: Rows, rita: User) -> None:
    run = rows.in_review()
    apply = rows.approved([run])
    cancel_apply(apply_id=apply.pk, user=rita, now=NOW)
    apply.refresh_from_db()
    run.refresh_from_db()
    assert apply.status == "cancelled"
    assert run.status == "approved"  # a reviewer's apply leaves it approved, to be approved again

    publishing = approve(runs=[seen_now(run)], user=rita, now=NOW)
    rows.syncing(publishing)
    with refused("not_cancellable"):
        cancel_apply(apply_id=publishing.pk, user=rita, now=NOW)


DECISIONS: dict[str, Callable[[EvolutionRun, User], object]] = {
    "approve": lambda run, user: approve(runs=[seen_now(run)], user=user, now=NOW),
    "reject": lambda run, user: reject(run=seen_now(run), user=user, reason="no", now=NOW),
    "retry": lambda run, user: retry(run_id=run.pk, attempt=run.attempts, hint="x", user=user, now=NOW),
    "cancel": lambda run, user: cancel_run(run_id=run.pk, user=user, now=NOW),
}


@pytest.mark.parametrize("name", sorted(DECISIONS))
def test_a_user_without_the_permission_decides_nothing(rows: Rows, name: str) -> None:
    run = rows.in_review()
    nobody = make_user("nils", "chat")

    with refused("forbidden"):
        DECISIONS[name](run, nobody)


def test_a_run_that_is_gone_is_named(rows: Rows, rita: User) -> None:
    with refused("not_found"):
        approve(runs=[RunSeen("0" * 26, 1)], user=rita, now=NOW)
    with refused("nothing_chosen"):
        approve(runs=[], user=rita, now=NOW)


def test_every_status_of_an_apply_that_has_ended_is_final() -> None:
    """The list that deciding again relies on."""
    assert {"applied", "rolled_back", "failed", "timeout", "cancelled"} == set(APPLY_FINAL)
    assert RunStatus.AWAITING_REVIEW not in APPLY_FINAL
    assert EvolutionApply._meta.get_field("status").default == "pending"
