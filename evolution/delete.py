"""A person removes a run for good: row first, then its folders, archive, and the applies it was the last of."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from core.db.models import record_event
from core.paths import EvolutionPaths
from evolution import permissions, transitions
from evolution.errors import Refused
from evolution.folder_lock import FolderBusy, holding
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.states import APPLY_IN_FLIGHT, RunStatus

_WAIT_SEC = 10.0
_AT_WORK = frozenset({RunStatus.PENDING, RunStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """What goes: shown to the person, who confirms exactly this."""

    run_id: str
    apply_ids: tuple[str, ...]
    paths: tuple[Path, ...]
    scenario_ids: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        return [
            f"run-{self.run_id}",
            *(f"apply-{apply_id}" for apply_id in self.apply_ids),
            *(f"scenario-{scenario_id}" for scenario_id in self.scenario_ids),
        ]

    def is_the_same(self, other: DeletePlan) -> bool:
        return (self.apply_ids, self.scenario_ids, set(self.paths)) == (
            other.apply_ids,
            other.scenario_ids,
            set(other.paths),
        )


def plan_delete(run_id: str) -> DeletePlan:
    """Raises Refused ``not_found`` or ``in_flight`` (details: ``row``, ``status``)."""
    run = EvolutionRun.objects.select_related("workspace").filter(pk=run_id).first()
    if run is None:
        raise Refused("not_found", f"There is no run-{run_id}; it may have been deleted.")
    applies = list(EvolutionApply.objects.filter(source_runs=run).order_by("pk"))
    relatives = EvolutionRun.objects.filter(applies__in=applies).distinct().order_by("pk")
    for row in (run, *relatives):
        if row.status in _AT_WORK:
            _refuse(row)
    for apply in applies:
        if apply.status in APPLY_IN_FLIGHT:
            _refuse(apply)
    left_alone = [apply for apply in applies if not apply.source_runs.exclude(pk=run.pk).exists()]
    folder = run.workspace.paths.evolution
    paths = [folder.run(run.pk), folder.archive / f"run-{run.pk}.zip"]
    for apply in left_alone:
        paths += [
            folder.apply(apply.pk),
            folder.history(apply.pk),
            folder.archive / f"apply-{apply.pk}.zip",
        ]
    return DeletePlan(
        run_id=run.pk,
        apply_ids=tuple(apply.pk for apply in left_alone),
        paths=tuple(path for path in paths if path.exists()),
        scenario_ids=tuple(
            RegressionScenario.objects.filter(run_id=run.pk).order_by("pk").values_list("pk", flat=True)
        ),
    )


def delete(*, plan: DeletePlan, user: User, now: datetime) -> None:
    """Delete what ``plan`` lists. Raises Refused as ``plan_delete``, ``forbidden``, or ``changed``.

    A crash after the rows are gone leaves folders without a row, which the archive pass removes.
    """
    permissions.require(user, "review")
    with transaction.atomic():
        _lock(plan)
        fresh = plan_delete(plan.run_id)
        if not fresh.is_the_same(plan):
            raise Refused("changed", "What would be deleted has changed since it was listed; look again.")
        run = EvolutionRun.objects.select_related("workspace").get(pk=plan.run_id)
        transitions.forget_scenarios(run.pk, user=user, now=now)
        run.delete()
        EvolutionApply.objects.filter(pk__in=plan.apply_ids).delete()
        for kind, row_id in [("run", plan.run_id), *(("apply", apply_id) for apply_id in plan.apply_ids)]:
            record_event(
                kind=f"evolution:{kind}_changed",
                object_id=row_id,
                workspace_id=run.workspace_id,
                payload={"deleted": True, "by": user.pk},
                now=now,
            )
    _remove_all(run.workspace.paths.evolution, plan)


def _remove_all(paths: EvolutionPaths, plan: DeletePlan) -> None:
    """The rows are gone, so this can't be refused any more: a busy archive pass is waited for, then passed by."""
    locks = [paths.folder_lock("run", plan.run_id)]
    locks += [paths.folder_lock("apply", apply_id) for apply_id in plan.apply_ids]
    with ExitStack() as stack:
        for lock in locks if paths.root.is_dir() else ():
            with suppress(FolderBusy):
                stack.enter_context(holding(lock, wait_sec=_WAIT_SEC))
        _remove(plan.paths)


def _lock(plan: DeletePlan) -> None:
    """Rows in one order, runs first: nobody claims one of them while the plan is checked once more."""
    list(
        EvolutionRun.objects.select_for_update()
        .filter(
            Q(pk=plan.run_id)
            | Q(pk__in=EvolutionRun.objects.filter(applies__source_runs=plan.run_id).values("pk"))
        )
        .order_by("pk")
    )
    list(EvolutionApply.objects.select_for_update().filter(source_runs=plan.run_id).order_by("pk"))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _refuse(row: EvolutionRun | EvolutionApply) -> None:
    raise Refused(
        "in_flight",
        f"{row} is {row.status}; cancel it or wait for its end before deleting.",
        row=str(row),
        status=row.status,
    )
