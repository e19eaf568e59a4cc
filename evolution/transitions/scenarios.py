"""Kept scenarios: left by a landing, retired by its rollback or by a person, gone with a run that is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from core.db.models import record_event
from core.db.text import storable
from core.ids import new_row_id
from evolution.artifacts.results import Landed
from evolution.models import EvolutionApply, RegressionScenario
from evolution.transitions._moves import Person

SCENARIO_EVENT = "evolution:scenario_changed"
ROLLED_BACK = "rolled back"


def keep_scenarios(
    *, apply_id: str, run_ids: Iterable[str], landed: Sequence[Landed], now: datetime
) -> list[str]:
    """One for each of ``run_ids`` that ``landed`` has texts of; their ids. Call it in the final transaction."""
    texts = {item.run_id: item for item in landed}
    workspace_id = EvolutionApply.objects.values_list("workspace_id", flat=True).get(pk=apply_id)
    kept = []
    for run_id in sorted(set(run_ids) & texts.keys()):
        item = texts[run_id]
        row = RegressionScenario.objects.create(
            id=new_row_id(),
            workspace_id=workspace_id,
            run_id=run_id,
            apply_id=apply_id,
            target=storable(item.target),
            agent_id=item.agent_id,
            original_message=storable(item.original_message),
            test_message=storable(item.test_message),
            change=storable(item.change),
            baseline=storable(item.baseline),
            answer=storable(item.answer),
            created_at=now,
        )
        _tell(row, {"kept": True, "run": run_id}, now=now)
        kept.append(row.pk)
    return kept


def retire_of_apply(apply_id: str, *, now: datetime) -> None:
    """What a landing left goes out of use with it. Call it in the transaction of the rollback's end."""
    for row in RegressionScenario.objects.filter(apply_id=apply_id, retired_at__isnull=True):
        _write(row, {"retired_at": now, "retired_by": None, "retired_reason": ROLLED_BACK}, now=now)


def retire_scenario(*, scenario_id: str, user: Person, reason: str, now: datetime) -> bool:
    """False: it is retired already, or gone."""
    row = RegressionScenario.objects.filter(pk=scenario_id, retired_at__isnull=True).first()
    values = {"retired_at": now, "retired_by_id": user.pk, "retired_reason": storable(reason)}
    return row is not None and _write(row, values, now=now, by=user.pk)


def restore_scenario(*, scenario_id: str, user: Person, now: datetime) -> bool:
    """False: it is in use already, or gone."""
    row = RegressionScenario.objects.filter(pk=scenario_id, retired_at__isnull=False).first()
    values = {"retired_at": None, "retired_by": None, "retired_reason": ""}
    return row is not None and _write(row, values, now=now, by=user.pk)


def forget_scenarios(run_id: str, *, user: Person, now: datetime) -> None:
    """A person deletes the run: what it left goes too. Call it in that transaction."""
    for row in RegressionScenario.objects.filter(run_id=run_id):
        _tell(row, {"deleted": True, "by": user.pk}, now=now)
        row.delete()


def _write(row: RegressionScenario, values: Mapping[str, Any], *, now: datetime, by: Any = None) -> bool:
    """Whichever of two retired or restored it first is the one that the row names."""
    with transaction.atomic():
        same = RegressionScenario.objects.filter(pk=row.pk, retired_at=row.retired_at)
        if row.retired_at is None:
            same = RegressionScenario.objects.filter(pk=row.pk, retired_at__isnull=True)
        if not same.update(**values):
            return False
        _tell(row, {"retired": values["retired_at"] is not None, "by": by}, now=now)
    return True


def _tell(row: RegressionScenario, payload: dict[str, object], *, now: datetime) -> None:
    record_event(
        kind=SCENARIO_EVENT, object_id=row.pk, workspace_id=row.workspace_id, payload=payload, now=now
    )
