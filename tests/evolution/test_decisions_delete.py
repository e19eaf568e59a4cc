"""Deleting a run: what goes with it, what stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from core.db.models import Event
from evolution.delete import delete, plan_delete
from evolution.models import EvolutionApply, EvolutionRun
from tests.evolution.rows import START as NOW
from tests.evolution.rows import Rows, make_user, refused
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def rita() -> User:
    return make_user("rita", "review")


def _folders(workspace: Workspace, run: EvolutionRun, apply: EvolutionApply | None = None) -> list[Path]:
    paths = workspace.paths.evolution
    folders = [paths.run_attempt(run.pk, 1)]
    if apply is not None:
        folders += [paths.apply_attempt(apply.pk, 1), paths.snapshot(apply.pk, 1)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "file").write_text("text")
    return folders


def test_a_run_goes_with_its_folder_and_an_event(rows: Rows, rita: User) -> None:
    run = rows.failed()
    (folder,) = _folders(rows.workspace, run)

    plan = plan_delete(run.pk)
    delete(plan=plan, user=rita, now=NOW)

    assert plan.paths == (rows.workspace.paths.evolution.run(run.pk),)
    assert not folder.exists()
    assert not EvolutionRun.objects.exists()
    assert Event.objects.latest("id").payload == {"deleted": True, "by": rita.pk}


def test_an_apply_and_its_snapshots_go_with_the_last_of_its_runs(rows: Rows, rita: User) -> None:
    first, second = rows.in_review(), rows.in_review()
    apply = rows.applied(rows.approved([first, second]))
    _, merge, snapshot = _folders(rows.workspace, first, apply)

    delete(plan=plan_delete(first.pk), user=rita, now=NOW)
    assert EvolutionApply.objects.filter(pk=apply.pk).exists()
    assert merge.exists() and snapshot.exists()

    delete(plan=plan_delete(second.pk), user=rita, now=NOW)
    assert not EvolutionApply.objects.exists()
    assert not merge.exists() and not snapshot.exists()


def test_nothing_at_work_is_deleted(rows: Rows, rita: User) -> None:
    waiting = rows.pending()
    approved = rows.in_review()
    rows.approved([approved])

    for run in (waiting, approved):
        with refused("in_flight"):
            plan_delete(run.pk)


def test_a_run_is_kept_while_one_that_shares_an_apply_with_it_is_at_work(rows: Rows, rita: User) -> None:
    from evolution.retry import retry

    first, second = rows.in_review(), rows.in_review()
    rows.failed_apply(rows.approved([first, second]))
    second.refresh_from_db()
    retry(run_id=second.pk, attempt=second.attempts, hint="again", user=rita, now=NOW)

    with refused("in_flight"):
        plan_delete(first.pk)


def test_what_was_listed_is_what_goes(rows: Rows, rita: User) -> None:
    first, second = rows.in_review(), rows.in_review()
    rows.applied(rows.approved([first, second]))
    stale = plan_delete(second.pk)
    delete(plan=plan_delete(first.pk), user=rita, now=NOW)

    with refused("changed"):
        delete(plan=stale, user=rita, now=NOW)


def test_deleting_needs_the_permission(rows: Rows) -> None:
    run = rows.failed()
    (folder,) = _folders(rows.workspace, run)

    with refused("forbidden"):
        delete(plan=plan_delete(run.pk), user=make_user("nils"), now=NOW)
    assert folder.exists()
