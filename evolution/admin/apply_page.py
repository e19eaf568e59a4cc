"""Everything the apply page shows: its sources, the merge, the regression, what was published, and the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.paths import UnsafePathError, inside
from evolution import manifest as manifests
from evolution.admin.reading import contents, head_of
from evolution.admin.run_page import DiffLine, DiffOfFile, growth, logs_of
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.score import ScoreInvalid, ScoreSummary, read_summary
from evolution.diff_rows import side_by_side
from evolution.manifest import BEFORE, ManifestUnreadable
from evolution.models import EvolutionApply, EvolutionRun
from evolution.outcome import said
from evolution.phases.ratchet import read_kept_results
from evolution.places import Found, found_of
from evolution.request_rollback import RollbackPreview
from evolution.spawn import Order
from evolution.states import APPLY_IN_FLIGHT


@dataclass(frozen=True, slots=True)
class Regressed:
    """One source run on the merged surface; no score: it hasn't been asked (yet)."""

    run: EvolutionRun
    score: ScoreSummary | None


def apply_page(apply: EvolutionApply) -> dict[str, Any]:
    """The template's context. ``apply`` has its workspace and people loaded."""
    attempt = apply.snapshot_attempt or apply.attempts
    with found_of(apply, attempt=attempt) as found:
        return _page(apply, found, AttemptFiles(found.attempt(attempt)))


def _page(apply: EvolutionApply, found: Found, files: AttemptFiles) -> dict[str, Any]:
    runs = list(apply.source_runs.order_by("pk"))
    return {
        "apply": apply,
        "sources": [Regressed(run, _score(files.regress(run.pk))) for run in runs],
        "kept": read_kept_results(files),
        "merge_log": head_of(files.apply_log, "Merge log"),
        "abort": head_of(files.abort, "Why it was not merged"),
        "diffs": _published(apply, files),
        "drifted": ", ".join(map(str, apply.drifted)),
        "kept_dirs": ", ".join(map(str, apply.kept_dirs)),
        "needs": said(apply.needs_person),
        "outcome": said(apply.rollback_outcome),
        "logs": logs_of(files, Order("apply", apply.pk, apply.attempts)),
        "working": apply.status in APPLY_IN_FLIGHT and apply.needs_person is None,
        "unread": found.unread,
    }


def rollback_diffs(found: RollbackPreview) -> list[DiffOfFile]:
    """What each file loses and gets back; those that stay as they are left out."""
    apply = found.apply
    if apply.snapshot_attempt is None or found.inspection.refusal is not None:
        return []
    paths = apply.workspace.paths
    snapshot = paths.evolution.snapshot(apply.pk, apply.snapshot_attempt)
    return [
        _diff(
            file.rel,
            before=_bytes(paths.halo, file.rel),
            after=_bytes(snapshot / BEFORE, file.rel) if file.kind == "overwrite" else None,
            state="what is there now, against what comes back",
        )
        for file in found.inspection.files
        if file.state != "reverted"
    ]


def _score(files: AttemptFiles) -> ScoreSummary | None:
    try:
        return read_summary(files.score)
    except (OSError, ScoreInvalid):
        return None


def _published(apply: EvolutionApply, files: AttemptFiles) -> list[DiffOfFile]:
    if apply.snapshot_attempt is None:
        return []
    snapshot = apply.workspace.paths.evolution.snapshot(apply.pk, apply.snapshot_attempt)
    try:
        manifest = manifests.read(snapshot)
    except ManifestUnreadable:
        return []
    return [
        _diff(
            file.rel,
            before=_bytes(snapshot / BEFORE, file.rel) if file.kind == "overwrite" else None,
            after=_bytes(files.sandbox, file.rel),
            state="new file" if file.kind == "new" else "from what was live before",
        )
        for file in manifest.files
        if not file.unchanged
    ]


def _diff(rel: str, *, before: bytes | None, after: bytes | None, state: str) -> DiffOfFile:
    found = side_by_side(before, after)
    return DiffOfFile(
        rel=rel,
        category="",
        why="",
        state=state,
        lines=[DiffLine(row) for row in found.rows],
        added=found.added,
        removed=found.removed,
        cut=found.cut,
        growth=growth(before, after),
    )


def _bytes(folder: Any, rel: str) -> bytes | None:
    try:
        return contents(inside(folder, rel))
    except UnsafePathError:
        return None
