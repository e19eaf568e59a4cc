"""The way so far: each step with when it ended and how long it took, read off the row and what it left behind.

Events would be more exact, but they are pruned after a day; a page has to say it a week later as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from core.texts import moment_words
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.score import ScoreSummary
from evolution.models import EvolutionRun
from evolution.states import RunStatus

State = Literal["done", "now", "off", "bad"]
_STEP_OF_PHASE = {"sandbox": "draft", "draft": "draft", "gates": "score"}
_ENDED_BADLY = frozenset({RunStatus.FAILED, RunStatus.TIMEOUT, RunStatus.CANCELLED, RunStatus.SKIPPED})


@dataclass(frozen=True, slots=True)
class Step:
    """``word`` says the state, so that no colour has to; ``detail`` is a duration, a moment or a count."""

    name: str
    state: State
    word: str
    detail: str = ""


def steps(run: EvolutionRun, folder: Path, score: ScoreSummary | None) -> list[Step]:
    """``folder`` is the newest attempt's."""
    queued: State = "now" if run.status == RunStatus.PENDING else "done"
    return [
        Step("queued", queued, "waits" if queued == "now" else "done", _moment(run.created_at)),
        *_phases(run, AttemptFiles(folder), score),
        _decision(run),
        *_landing(run),
    ]


def duration(span: timedelta) -> str:
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def _phases(run: EvolutionRun, files: AttemptFiles, score: ScoreSummary | None) -> Iterator[Step]:
    fixed = _ended(files.dry_run_failure(1))
    drafted = _earliest([_ended(files.patch) or _ended(files.skip), fixed])
    ends = [
        ("draft", drafted, ""),
        ("dry_run", _ended(files.dry_run_output), "one fix needed" if fixed else "no fix needed"),
        ("control", _ended(files.control_output), ""),
        ("score", _ended(files.score), _asked(score)),
    ]
    current = _STEP_OF_PHASE.get(run.phase, run.phase) if run.status == RunStatus.RUNNING else ""
    since, stopped = run.started_at, False
    fresh = run.attempts <= run.attempts_base
    for name, end, remark in ends:
        label = name.replace("_", " ")
        if name == current:
            yield Step(label, "now", "at work", _progress(run) or (_since(since) if since else ""))
        elif end is not None and not fresh and not (current and stopped):
            took = duration(end - since) if since else ""
            yield Step(label, "done", "done", ", ".join(filter(None, [took, remark])))
            since = end
        elif run.status in _ENDED_BADLY and not stopped:
            stopped = True
            yield Step(label, "bad", run.get_status_display().lower(), _moment(run.finished_at))
        else:
            yield Step(label, "off", "not reached" if run.status != RunStatus.RUNNING else "to come")
        stopped = stopped or name == current


def _decision(run: EvolutionRun) -> Step:
    if run.status == RunStatus.AWAITING_REVIEW:
        return Step("your decision", "now", "waits", _since(run.finished_at) if run.finished_at else "")
    if run.status == RunStatus.REJECTED:
        return Step("decision", "bad", "rejected", _moment(run.decided_at))
    if run.status in (RunStatus.APPROVED, RunStatus.APPLIED, RunStatus.ROLLED_BACK):
        return Step("decision", "done", "approved", _moment(run.decided_at))
    return Step("decision", "off", "to come" if run.status == RunStatus.RUNNING else "not reached")


def _landing(run: EvolutionRun) -> Iterator[Step]:
    apply = run.current_apply
    if apply is None:
        return
    word = apply.get_status_display().lower()
    if apply.status == "applied":
        yield Step("apply", "done", word, _moment(apply.finished_at))
    elif apply.finished_at is None or apply.status == "rolling_back":
        yield Step("apply", "now", word, apply.phase.replace("_", " "))
    else:
        yield Step("apply", "bad", word, _moment(apply.finished_at))


def _progress(run: EvolutionRun) -> str:
    total = run.progress.get("total")
    return f"{run.progress.get('done', 0)} of {total}" if total else ""


def _asked(score: ScoreSummary | None) -> str:
    if score is None or len(score.samples) == 1:
        return ""
    return f"{len(score.samples)} askings, spread {score.spread:.1f}"


def _ended(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    except OSError:
        return None


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _moment(moment: datetime | None) -> str:
    return moment_words(moment) if moment else ""


def _since(moment: datetime) -> str:
    return f"since {moment_words(moment)}"
