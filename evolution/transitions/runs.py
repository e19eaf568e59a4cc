"""Runs, as ticker and wrapper move them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from core.db.models import process_values
from core.ids import new_row_id
from evolution.claim import Claim, Observed
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import RunStatus
from evolution.transitions._moves import claimed_values, held, move_row


@dataclass(frozen=True, slots=True)
class RunScore:
    """The figures the row shows: medians of the samples, the worst confidence, the spread of the averages."""

    lint: int
    behavior: int
    scope: int
    average: float
    confidence: str
    spread: float

    def values(self) -> dict[str, Any]:
        return {
            "score_lint": self.lint,
            "score_behavior": self.behavior,
            "score_scope": self.scope,
            "score_avg": self.average,
            "score_confidence": self.confidence,
            "score_spread": self.spread,
        }


def claim_run(*, run_id: str, attempts: int, now: datetime) -> Claim | None:
    """Pending to running at attempt ``attempts + 1``; None when it isn't pending at ``attempts`` any more."""
    moved = move_row(
        EvolutionRun.objects.filter(attempts=attempts),
        row_id=run_id,
        source=RunStatus.PENDING,
        target=RunStatus.RUNNING,
        now=now,
        values={**claimed_values(now), "phase": "", "progress": {}},
    )
    return Claim("run", run_id, RunStatus.RUNNING, attempts + 1) if moved else None


def time_out_run(observed: Observed, *, reason: str, now: datetime) -> bool:
    return move_row(
        observed.rows(),
        row_id=observed.claim.row_id,
        source=RunStatus.RUNNING,
        target=RunStatus.TIMEOUT,
        now=now,
        values={"finished_at": now, "failure_reason": reason, **process_values(None)},
    )


def fail_run(claim: Claim, *, reason: str, now: datetime, has_observation: bool = False) -> None:
    """Raises ClaimLost."""
    _finish(
        claim,
        RunStatus.FAILED,
        now=now,
        values={"failure_reason": reason, "has_observation": has_observation},
    )


def skip_run(claim: Claim, *, reason: str, now: datetime, has_observation: bool = False) -> None:
    """Raises ClaimLost."""
    _finish(
        claim, RunStatus.SKIPPED, now=now, values={"skip_reason": reason, "has_observation": has_observation}
    )


def await_review(
    claim: Claim, *, score: RunScore, auto_reason: str, has_observation: bool, now: datetime
) -> None:
    """``auto_reason``: why the gates did not let it through. Raises ClaimLost."""
    _finish(
        claim,
        RunStatus.AWAITING_REVIEW,
        now=now,
        values={**score.values(), "auto_reason": auto_reason, "has_observation": has_observation},
    )


def pass_gates(
    claim: Claim, *, score: RunScore, auto_reason: str, has_observation: bool, now: datetime
) -> str:
    """The run is approved by its own gates and its apply inserted, in one transaction; the apply's id.

    Raises ClaimLost, and then there is no apply either.
    """
    apply_id = new_row_id()
    with transaction.atomic():
        workspace_id = EvolutionRun.objects.values_list("workspace_id", flat=True).get(pk=claim.row_id)
        apply = EvolutionApply.objects.create(id=apply_id, workspace_id=workspace_id, created_at=now)
        apply.source_runs.set(EvolutionRun.objects.filter(pk=claim.row_id))
        _finish(
            claim,
            RunStatus.APPROVED,
            now=now,
            values={
                **score.values(),
                "auto_reason": auto_reason,
                "has_observation": has_observation,
                "current_apply_id": apply_id,
                "decided_by": None,
                "decided_at": now,
            },
            detail={"apply": apply_id},
        )
    return apply_id


def _finish(
    claim: Claim,
    target: RunStatus,
    *,
    now: datetime,
    values: Mapping[str, Any],
    detail: Mapping[str, Any] | None = None,
) -> None:
    moved = move_row(
        claim.rows(),
        row_id=claim.row_id,
        source=RunStatus.RUNNING,
        target=target,
        now=now,
        values={"finished_at": now, **process_values(None), **values},
        detail=detail,
    )
    held(moved, row_id=claim.row_id)
