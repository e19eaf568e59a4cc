"""Applies, as ticker and wrapper move them: merge, checkpoint, publish, restore, roll back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from core.db.models import process_values
from evolution.artifacts.results import Landed
from evolution.claim import Claim, Observed
from evolution.models import EvolutionApply
from evolution.states import ApplyStatus, RunStatus
from evolution.transitions._moves import (
    carry_runs,
    claimed_values,
    end_apply,
    held,
    move_row,
)
from evolution.transitions.scenarios import keep_scenarios, retire_of_apply

RESTORING = "restoring"
"""The phase of a syncing apply that goes back: from its first write on, every resume restores."""
PLANNING = "planning"
"""The phase of a rollback that has no plan yet: only now can it still be refused."""


def claim_apply(*, apply_id: str, attempts: int, now: datetime) -> Claim | None:
    """Pending to running; None when it isn't pending at ``attempts``, or its workspace is busy."""
    try:
        with transaction.atomic():
            moved = move_row(
                EvolutionApply.objects.filter(attempts=attempts),
                row_id=apply_id,
                source=ApplyStatus.PENDING,
                target=ApplyStatus.RUNNING,
                now=now,
                values={**claimed_values(now), "phase": "", "progress": {}},
            )
    except IntegrityError:
        return None  # one_apply_per_workspace: another process was faster
    return Claim("apply", apply_id, ApplyStatus.RUNNING, attempts + 1) if moved else None


def time_out_apply(observed: Observed, *, reason: str, now: datetime) -> bool:
    with transaction.atomic():
        return end_apply(
            observed.rows(),
            apply_id=observed.claim.row_id,
            source=ApplyStatus.RUNNING,
            target=ApplyStatus.TIMEOUT,
            now=now,
            values={"failure_reason": reason, **process_values(None)},
        )


def resume_apply(observed: Observed, *, now: datetime) -> Claim | None:
    """A new attempt for a syncing or rolling-back apply, in the same direction and the slot it holds."""
    return _resume(observed.rows(), observed.claim, now=now)


def resume_waiting(*, apply_id: str, status: str, attempts: int, now: datetime) -> Claim | None:
    """The same for an apply that waits for a slot after "Try again"."""
    rows = EvolutionApply.objects.filter(
        attempts=attempts, needs_person__isnull=True, started_at__isnull=True
    )
    return _resume(rows, Claim("apply", apply_id, status, attempts), now=now)


def _resume(rows: Any, claim: Claim, *, now: datetime) -> Claim | None:
    moved = move_row(
        rows,
        row_id=claim.row_id,
        source=claim.status,
        target=claim.status,
        now=now,
        values=claimed_values(now),
    )
    return Claim("apply", claim.row_id, claim.status, claim.attempt + 1) if moved else None


def checkpoint(claim: Claim, *, now: datetime) -> Claim:
    """From here on the live surface may be written. Raises ClaimLost, with the surface untouched."""
    moved = move_row(
        claim.rows(),
        row_id=claim.row_id,
        source=ApplyStatus.RUNNING,
        target=ApplyStatus.SYNCING,
        now=now,
        values={
            "snapshot_attempt": claim.attempt,
            "attempts_base": F("attempts"),
            "phase": "publishing",
            "progress": {},
        },
    )
    held(moved, row_id=claim.row_id)
    return claim.at(ApplyStatus.SYNCING)


def finish_apply(
    claim: Claim, *, now: datetime, edited_since: Sequence[str] = (), landed: Sequence[Landed] = ()
) -> list[str]:
    """The published bytes were read back: apply and runs are applied, their scenarios kept. The runs' ids.

    Raises ClaimLost.
    """
    with transaction.atomic():
        moved = move_row(
            claim.rows().exclude(phase=RESTORING),
            row_id=claim.row_id,
            source=ApplyStatus.SYNCING,
            target=ApplyStatus.APPLIED,
            now=now,
            values={"finished_at": now, "drifted": list(edited_since), "phase": "", **process_values(None)},
        )
        held(moved, row_id=claim.row_id)
        carried = carry_runs(claim.row_id, source=RunStatus.APPROVED, target=RunStatus.APPLIED, now=now)
        keep_scenarios(apply_id=claim.row_id, run_ids=carried, landed=landed, now=now)
        return carried


def begin_restoring(rows_of: Claim | Observed, *, reason: str, drifted: Sequence[str], now: datetime) -> bool:
    """Turn a syncing apply round, once; by its wrapper (drift) or by the ticker (tries spent)."""
    claim = rows_of.claim if isinstance(rows_of, Observed) else rows_of
    return move_row(
        rows_of.rows().exclude(phase=RESTORING),
        row_id=claim.row_id,
        source=ApplyStatus.SYNCING,
        target=ApplyStatus.SYNCING,
        now=now,
        values={
            "phase": RESTORING,
            "progress": {"cause": reason},  # a resume clears failure_reason, and the end has to say why
            "attempts_base": F("attempts"),
            "failure_reason": reason,
            "drifted": list(drifted),
        },
    )


def fail_apply(
    claim: Claim,
    *,
    reason: str,
    now: datetime,
    drifted: Sequence[str] | None = None,
    kept_dirs: Sequence[str] = (),
) -> None:
    """Before the checkpoint at once, after it only out of ``restoring``. Raises ClaimLost.

    ``kept_dirs``: what the restore had to leave. The runs of an auto apply go back to their reviewers in the
    same transaction.
    """
    rows = claim.rows()
    if claim.status == ApplyStatus.SYNCING:
        rows = rows.filter(phase=RESTORING)
    values: dict[str, Any] = {"failure_reason": reason, "kept_dirs": list(kept_dirs), **process_values(None)}
    if drifted is not None:
        values["drifted"] = list(drifted)
    with transaction.atomic():
        moved = end_apply(
            rows,
            apply_id=claim.row_id,
            source=claim.status,
            target=ApplyStatus.FAILED,
            now=now,
            values=values,
        )
        held(moved, row_id=claim.row_id)


def refuse_rollback(claim: Claim, *, code: str, details: Mapping[str, Any], now: datetime) -> None:
    """Refused while planning: the apply stays applied, and its row says why. Raises ClaimLost."""
    moved = move_row(
        claim.rows().filter(phase=PLANNING),
        row_id=claim.row_id,
        source=ApplyStatus.ROLLING_BACK,
        target=ApplyStatus.APPLIED,
        now=now,
        values={
            "finished_at": now,
            "phase": "",
            "failure_reason": code,
            "rollback_outcome": {"refused": code, **details},
            **process_values(None),
        },
        detail={"refused": code},
    )
    held(moved, row_id=claim.row_id)


def finish_rollback(claim: Claim, *, outcome: Mapping[str, Any], now: datetime) -> list[str]:
    """Apply and runs are rolled back, what they left to the ratchet retired; the runs' ids. Raises ClaimLost."""
    with transaction.atomic():
        moved = move_row(
            claim.rows(),
            row_id=claim.row_id,
            source=ApplyStatus.ROLLING_BACK,
            target=ApplyStatus.ROLLED_BACK,
            now=now,
            values={
                "finished_at": now,
                "phase": "",
                "rollback_outcome": dict(outcome),
                **process_values(None),
            },
        )
        held(moved, row_id=claim.row_id)
        retire_of_apply(claim.row_id, now=now)
        return carry_runs(claim.row_id, source=RunStatus.APPLIED, target=RunStatus.ROLLED_BACK, now=now)


def mark_needs_person(observed: Observed, *, account: Mapping[str, Any], now: datetime) -> bool:
    """Tries spent: no machine goes on. It keeps its workspace and leaves the slot count.

    ``account``: ``reason`` and ``files``, what a person has to look at.
    """
    return move_row(
        observed.rows(),
        row_id=observed.claim.row_id,
        source=observed.claim.status,
        target=observed.claim.status,
        now=now,
        values={"needs_person": dict(account), **process_values(None)},
        detail={"needs_person": True},
    )
