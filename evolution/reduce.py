"""When a row is final its sandbox is reduced to the changed files, with their base versions."""

from __future__ import annotations

import logging
from pathlib import Path

from core.paths import halo_home
from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.models import EvolutionApply, EvolutionRun
from evolution.places import folder_of
from evolution.states import APPLY_FINAL, RUN_FINAL

logger = logging.getLogger(__name__)


def reduce_run(run_id: str) -> None:
    """The run's newest attempt, if the run is final. What fails is logged; the archive pass takes it anyway."""
    run = EvolutionRun.objects.select_related("workspace").filter(pk=run_id, status__in=RUN_FINAL).first()
    if run is not None:
        _reduce(run.workspace.paths.evolution.run_attempt(run.pk, run.attempts))


def reduce_apply(apply_id: str) -> None:
    """The same for an apply and for the runs that ended with it."""
    rows = EvolutionApply.objects.select_related("workspace")
    apply = rows.filter(pk=apply_id, status__in=APPLY_FINAL).first()
    if apply is None:
        return
    for attempt in _attempts(apply):
        _reduce(attempt)
    for run_id in apply.current_runs.filter(status__in=RUN_FINAL).values_list("pk", flat=True):
        reduce_run(run_id)


def reduce_all(row: EvolutionRun | EvolutionApply) -> bool:
    """Every attempt of a final row, also of one that ended without a wrapper. False: there was nothing to do."""
    attempts = [path for path in _attempts(row) if _is_whole(path)]
    for attempt in attempts:
        _reduce(attempt)
    return bool(attempts)


def is_reducible(row: EvolutionRun | EvolutionApply) -> bool:
    return any(_is_whole(path) for path in _attempts(row))


def _is_whole(attempt: Path) -> bool:
    files = AttemptFiles(attempt)
    return files.sandbox.is_dir() and not files.reduced.exists()


def _attempts(row: EvolutionRun | EvolutionApply) -> list[Path]:
    """All of them: of an apply, the snapshot's attempt and the rollback's are others than the newest."""
    folder = folder_of(row) / "attempts"
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _reduce(folder: Path) -> None:
    try:
        sandbox.reduce(folder, global_folder=halo_home().global_folder)
    except OSError:
        logger.exception("%s could not be reduced", folder)
