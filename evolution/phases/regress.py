"""Phase B': every source run's scenario must still work on the merged sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import Patch, PatchInvalid, read_patch
from evolution.artifacts.results import Merge, RegressedRun, Regression, Source
from evolution.errors import PhaseFailed
from evolution.phases.common import changed_files
from evolution.phases.context import PhaseContext
from evolution.phases.holding import FLOOR, Case, Judgement, hold

__all__ = ["FLOOR", "regress"]


def regress(ctx: PhaseContext, sources: Sequence[Source], merged: Merge, hint: str) -> Regression:
    """``hint`` is the reviewer's. Raises PhaseFailed that names the run whose scenario no longer works."""
    runs = []
    for number, source in enumerate(sources, start=1):
        ctx.progress("regress", number, len(sources))
        case = _case(ctx, source, merged, hint)
        try:
            judged = hold(ctx, case)
        except PhaseFailed as error:
            raise PhaseFailed(
                f"run-{source.run_id} no longer works after the merge: {error.reason}"
            ) from error
        runs.append(_regressed(source, judged))
    return Regression(tuple(runs))


def _regressed(source: Source, judged: Judgement) -> RegressedRun:
    return RegressedRun(source.run_id, lint=judged.lint, behavior=judged.behavior, askings=judged.askings)


def _case(ctx: PhaseContext, source: Source, merged: Merge, hint: str) -> Case:
    files, approved = AttemptFiles(ctx.folder).regress(source.run_id), AttemptFiles(source.folder)
    files.folder.mkdir(parents=True, exist_ok=True)
    return Case(
        name=source.run_id,
        run_id=source.run_id,
        scenario=_patch(source, approved.patch).scenario,
        files=files,
        patch=approved.patch,
        baseline=approved.baseline,
        approved=approved.dry_run_output,
        hint=source.hint,
        reviewer_hint=hint,
        changed=changed_files(ctx, ctx.folder, merged.changed),
        read=(source.folder,),
    )


def _patch(source: Source, path: Path) -> Patch:
    try:
        return read_patch(path)
    except (OSError, PatchInvalid) as error:
        raise PhaseFailed(f"patch.md of run-{source.run_id} can't be used: {error}.") from error
