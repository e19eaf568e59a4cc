"""The way of an apply: merge, regression run, preflight, checkpoint, publication; after a crash, on from there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

from django.db import transaction

from core.paths import halo_home
from evolution import manifest as manifests
from evolution import publish, restore, sandbox, snapshot, transitions
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Source
from evolution.claim import Claim
from evolution.errors import ClaimLost
from evolution.job import Job
from evolution.manifest import Manifest
from evolution.models import EvolutionApply
from evolution.notify import notify
from evolution.phases import merge, ratchet, regress
from evolution.phases.context import PhaseContext
from evolution.publishing_lock import publishing
from evolution.recheck import recheck
from evolution.selectors import landed_texts, scenarios_touched
from evolution.states import ApplyStatus


def work(job: Job) -> None:
    """Raises PhaseFailed (before the checkpoint), ClaimLost, LockHeld, OSError.

    An auto apply is checked once more before the checkpoint; a resume goes on from there without any of it.
    """
    if job.heart.claim.status == ApplyStatus.SYNCING:
        _go_on(job)
        return
    apply = cast(EvolutionApply, job.row)
    ctx = job.context()
    _prepare(job, ctx, apply)
    job.enter("preflight")
    with publishing(job):
        manifest = _take_snapshot(job, apply)
        if apply.is_auto:
            job.step("recheck")
            recheck(ctx)
        job.step("checkpoint")
        job.move(lambda claim, now: transitions.checkpoint(claim, now=now))
        job.step("syncing")
        _publish(job, manifest, _snapshot_folder(job, job.order.attempt))


def _prepare(job: Job, ctx: PhaseContext, apply: EvolutionApply) -> None:
    sources, hint = sources_of(apply), apply.reviewer_hint
    job.enter("sandbox")
    sandbox.prepare_apply(ctx)
    job.enter("merge")
    locked = tuple(job.settings.get("general.evolution.locked"))
    merged = merge.merge(ctx, sources, hint, locked=locked)
    job.enter("regress")
    regress.regress(ctx, sources, merged, hint)
    limit = job.settings.get("general.evolution.scenarios_per_apply")
    ratchet.ratchet(ctx, scenarios_touched(apply, changed=merged.changed, limit=limit), merged)
    sandbox.verify_untouched(ctx)


def sources_of(apply: EvolutionApply) -> tuple[Source, ...]:
    """The runs that still stand for this apply, each at the attempt that was approved."""
    paths = apply.workspace.paths.evolution
    runs = apply.current_runs.order_by("id")
    return tuple(
        Source(run.pk, paths.run_attempt(run.pk, run.attempts), paths.run(run.pk), run.user_hint)
        for run in runs
    )


def _take_snapshot(job: Job, apply: EvolutionApply) -> Manifest:
    files = AttemptFiles(job.folder)
    return snapshot.prepare(
        halo=job.workspace.halo,
        base_manifest=files.base_manifest,
        sandbox=files.sandbox,
        snapshot_folder=_snapshot_folder(job, job.order.attempt),
        apply_id=apply.pk,
        source_run_ids=[source.run_id for source in sources_of(apply)],
        hidden=sandbox.hidden_surface(halo_home().global_folder, job.workspace.root),
        now=job.now(),
        confirm=job.confirm,
        step=job.step,
    )


def _go_on(job: Job) -> None:
    """A resume: by the snapshot that the checkpoint named, in the direction the row stands for."""
    apply = cast(EvolutionApply, job.row)
    with publishing(job):
        folder = _snapshot_folder(job, cast(int, apply.snapshot_attempt))
        manifest = manifests.read(folder)
        if apply.phase == transitions.RESTORING:
            _restore(job, manifest, folder, reason=str(apply.progress.get("cause", "")))
        else:
            _publish(job, manifest, folder)


def _publish(job: Job, manifest: Manifest, folder: Path) -> None:
    try:
        outcome = publish.publish(
            halo=job.workspace.halo,
            snapshot_folder=folder,
            manifest=manifest,
            confirm=job.confirm,
            step=job.step,
        )
    except publish.Drifted as drift:
        reason, rels = drift.reason, drift.rels
        job.step("turn")
        job.move(lambda claim, now: _turned(claim, reason=reason, rels=rels, now=now))
        _restore(job, manifest, folder, reason=reason)
        return
    listed = _listed(job, folder, outcome.edited_since, outcome.kept)
    job.row.refresh_from_db(fields=["snapshot_attempt"])
    apply = cast(EvolutionApply, job.row)
    landed = landed_texts(apply)

    def land(claim: Claim, now: datetime) -> None:
        """The end and its notice in one transaction: so neither is ever without the other, nor sent twice."""
        with transaction.atomic():
            transitions.finish_apply(claim, edited_since=listed, landed=landed, now=now)
            notify(apply=apply, manifest=manifest, now=now)

    job.finish(land)


def _turned(claim: Claim, *, reason: str, rels: Sequence[str], now: datetime) -> Claim:
    if not transitions.begin_restoring(claim, reason=reason, drifted=rels, now=now):
        raise ClaimLost(f"{claim.row_id} was taken over before it was turned back.")
    return claim


def _restore(job: Job, manifest: Manifest, folder: Path, *, reason: str) -> None:
    outcome = restore.restore(
        halo=job.workspace.halo,
        snapshot_folder=folder,
        manifest=manifest,
        confirm=job.confirm,
        step=job.step,
    )
    listed = _listed(job, folder, outcome.edited, outcome.kept)
    kept_dirs = outcome.kept_dirs
    job.finish(
        lambda claim, now: transitions.fail_apply(
            claim, reason=reason, drifted=listed, kept_dirs=kept_dirs, now=now
        )
    )


def _listed(job: Job, snapshot_folder: Path, edited: Sequence[str], kept: Sequence[str]) -> list[str]:
    """What people are told: the files they edited, and where below ``.halo/`` a text that made way lies."""
    stage = (snapshot_folder / manifests.STAGE).relative_to(job.workspace.halo)
    return [*edited, *((stage / path).as_posix() for path in kept)]


def _snapshot_folder(job: Job, attempt: int) -> Path:
    return job.paths.snapshot(job.order.row_id, attempt)
