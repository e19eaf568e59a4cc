"""What a person needs to decide on a run, read from its row and its folder. Views and commands show the same.

Everything on disk may be missing or half there (not begun, failed early, reduced): then the field is empty.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.paths import HaloHome
from evolution.approve import awaits_decision
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import Patch, PatchInvalid, read_observation, read_patch
from evolution.artifacts.score import ScoreInvalid, ScoreSummary, read_summary
from evolution.artifacts.verdict import read_verdict
from evolution.live_diff import FileChange, changed_files
from evolution.missing_tools import missing_tools
from evolution.models import EvolutionRun
from evolution.places import Found, folder_of, found_of, read_file, zip_of

MAX_SHOWN_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class Answers:
    """Three answers side by side; empty: not given (yet)."""

    baseline: str = ""
    control: str = ""
    dry_run: str = ""
    regression: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """``folder`` is where the attempt's files lie, or the zip that they were packed into; ``unread``: what was packed
    and can't be shown, and why.

    ``differs``: prompt files that had changed between the freeze and the claim. ``missing_tools``: what the
    agent called in vain in control and dry run, since an evaluation hasn't got it.
    """

    run: EvolutionRun
    folder: Path
    unread: tuple[str, ...] = ()
    patch: Patch | None = None
    observation: str = ""
    changes: list[FileChange] = field(default_factory=list)
    answers: Answers = field(default_factory=Answers)
    score: ScoreSummary | None = None
    verdict: dict[str, Any] | None = None
    differs: list[str] = field(default_factory=list)
    missing_tools: list[str] = field(default_factory=list)

    @property
    def is_stale(self) -> bool:
        """Whether a file the draft changes has changed in the live surface since."""
        return any(change.is_stale for change in self.changes)


def view_run(run: EvolutionRun, *, home: HaloHome) -> RunView:
    """``run`` with its workspace and current apply loaded."""
    with found_of(run, attempt=run.attempts) as found:
        return view_found(run, found, home=home)


def view_found(run: EvolutionRun, found: Found, *, home: HaloHome) -> RunView:
    """The same for a caller who has the run's folder open already."""
    files = AttemptFiles(found.attempt(run.attempts))
    lies = zip_of(run) if run.archived_at else folder_of(run)
    if run.attempts <= run.attempts_base or not files.folder.is_dir():
        return RunView(run=run, folder=lies, unread=found.unread)
    return RunView(
        run=run,
        folder=lies if run.archived_at else files.folder,
        unread=found.unread,
        patch=_patch(files),
        observation=read_observation(files.folder),
        changes=changed_files(files, live=run.workspace.paths.halo, global_folder=home.global_folder),
        answers=_answers(run, files),
        score=_score(files),
        verdict=read_verdict(files.folder),
        differs=_differs(files),
        missing_tools=missing_tools(files),
    )


def is_stale(run: EvolutionRun, *, home: HaloHome) -> bool:
    """The same for a list, of runs that wait for a person; ``run`` with its workspace and current apply loaded.

    Only the files are read that the gates found changed; without their word, all.
    """
    if not awaits_decision(run):
        return False
    paths = run.workspace.paths
    files = AttemptFiles(paths.evolution.run_attempt(run.pk, run.attempts))
    changes = (read_verdict(files.folder) or {}).get("changes")
    only = None
    if isinstance(changes, list):
        only = [str(item["rel"]) for item in changes if isinstance(item, dict) and "rel" in item]
    found = changed_files(files, live=paths.halo, global_folder=home.global_folder, only=only)
    return any(change.is_stale for change in found)


def _differs(files: AttemptFiles) -> list[str]:
    try:
        found = json.loads(files.differs.read_bytes())
    except (OSError, ValueError):
        return []
    return [str(rel) for rel in found] if isinstance(found, list) else []


def _patch(files: AttemptFiles) -> Patch | None:
    try:
        return read_patch(files.patch)
    except (OSError, PatchInvalid):
        return None


def _score(files: AttemptFiles) -> ScoreSummary | None:
    try:
        return read_summary(files.score)
    except (OSError, ScoreInvalid):
        return None


def _answers(run: EvolutionRun, files: AttemptFiles) -> Answers:
    return Answers(
        baseline=_text(files.baseline),
        control=_text(files.control_output),
        dry_run=_text(files.dry_run_output),
        regression=_regression(run),
    )


def _regression(run: EvolutionRun) -> str:
    apply = run.current_apply
    if apply is None:
        return ""
    attempt = AttemptFiles(Path("attempts") / str(apply.snapshot_attempt or apply.attempts))
    rel = attempt.regress(run.pk).dry_run_output.as_posix()
    paths = run.workspace.paths.evolution
    folder, archive = paths.apply(apply.pk), paths.archived("apply", apply.pk)
    return read_file(folder, archive, rel, limit=MAX_SHOWN_BYTES).decode(errors="replace").strip()


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_SHOWN_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
