"""The way of a rollback: check again, plan, carry out; after a crash, on from the plan."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import cast

from evolution import outcome as outcomes
from evolution import rollback, transitions
from evolution.errors import Refused
from evolution.job import Job
from evolution.manifest import STAGE
from evolution.models import EvolutionApply
from evolution.publishing_lock import publishing
from evolution.rollback_plan import RollbackPlan, newest_plan


def work(job: Job) -> None:
    """Raises ClaimLost, LockHeld, OSError."""
    apply = cast(EvolutionApply, job.row)
    snapshot = job.paths.snapshot(apply.pk, cast(int, apply.snapshot_attempt))
    with publishing(job):
        try:
            folder, plan = newest_plan(snapshot) or _plan(job, apply, snapshot)
        except Refused as refused:
            code, details = refused.code, refused.details
            job.finish(
                lambda claim, now: transitions.refuse_rollback(claim, code=code, details=details, now=now)
            )
            return
        job.enter("rolling_back")
        outcome = rollback.execute(
            halo=job.workspace.halo,
            snapshot_folder=snapshot,
            rollback_folder=folder,
            plan=plan,
            confirm=job.confirm,
            step=job.step,
        )
        stage = PurePosixPath((folder / STAGE).relative_to(job.workspace.halo))
        account = outcomes.to_json(outcome, stage=stage)
        job.finish(lambda claim, now: transitions.finish_rollback(claim, outcome=account, now=now))


def _plan(job: Job, apply: EvolutionApply, snapshot: Path) -> tuple[Path, RollbackPlan]:
    """Raises Refused, with nothing touched."""
    job.step("planning")
    folder = snapshot / f"rollback-{job.order.attempt}"
    plan = rollback.plan(
        halo=job.workspace.halo,
        snapshot_folder=snapshot,
        rollback_folder=folder,
        force=apply.rollback_force,
        shown=apply.rollback_seen,
        now=job.now(),
        confirm=job.confirm,
        step=job.step,
    )
    return folder, plan
