"""Everything the run page shows, read once; the templates only lay it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.events import Message
from core.paths import HaloHome
from core.version import halo_version
from evolution.admin.reading import Text, files_below, head_of, tail_of
from evolution.admin.steps import steps
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import FrozenFiles, FrozenUnreadable, read_messages
from evolution.artifacts.patch import without_observation
from evolution.artifacts.score import ScoreSummary
from evolution.artifacts.verdict import gates_of
from evolution.diff_rows import DiffRow, SideBySide, side_by_side
from evolution.live_diff import FileChange
from evolution.models import EvolutionApply, EvolutionRun
from evolution.observation import Facts, IssueLink, issue_links
from evolution.places import Found, found_of
from evolution.repeats import Source, sources_of
from evolution.run_view import RunView, view_found
from evolution.spawn import Order
from evolution.states import APPLY_IN_FLIGHT, RunStatus

_CHECK_WORDS = {
    "patchInSandbox": "patch in sandbox",
    "usedInDryRun": "used in dry run",
    "probe": "probe",
    "probeLanguage": "language",
}
_GOOD = frozenset({"pass", "yes", "valid", "same"})


@dataclass(frozen=True, slots=True)
class DiffLine:
    """``repeats``: what of the frozen conversation the new line repeats."""

    row: DiffRow
    repeats: Source | None = None


@dataclass(frozen=True, slots=True)
class DiffOfFile:
    rel: str
    category: str
    why: str
    state: str
    lines: list[DiffLine]
    added: int
    removed: int
    cut: int
    growth: str
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """``low`` and ``high`` over all askings; ``shown`` is the median."""

    name: str
    shown: int
    low: int
    high: int


def run_page(run: EvolutionRun, *, home: HaloHome) -> dict[str, Any]:
    """The template's context. ``run`` has its workspace, apply, asker and decider loaded."""
    with found_of(run, attempt=run.attempts) as found:
        return _page(run, found, home)


def _page(run: EvolutionRun, found: Found, home: HaloHome) -> dict[str, Any]:
    view = view_found(run, found, home=home)
    folder, attempt = found.folder, found.attempt(run.attempts)
    return {
        "run": run,
        "view": view,
        "draft": without_observation(view.patch.body) if view.patch else "",
        "steps": steps(run, attempt, view.score),
        "diffs": diffs_of(view, folder),
        "links": _links(view),
        "answers": _answers(view),
        "bars": _bars(view.score) if view.score else [],
        "checks": _checks(view.score) if view.score else [],
        "notes": [sample.notes for sample in view.score.samples if sample.notes] if view.score else [],
        "averages": [sample.avg for sample in view.score.samples] if view.score else [],
        "gates": gates_of(view.verdict),
        "logs": logs_of(AttemptFiles(attempt), Order("run", run.pk, run.attempts)),
        "conversation": head_of(FrozenFiles(folder).tool_flow, "Conversation"),
        "files": files_below(folder),
        "applies": list(
            EvolutionApply.objects.filter(source_runs=run).select_related("approved_by").order_by("-pk")[:20]
        ),
        "working": is_at_work(run),
        "unread": found.unread,
    }


def is_at_work(run: EvolutionRun) -> bool:
    """Whether the page will show something else in a moment."""
    apply = run.current_apply
    return run.status in (RunStatus.PENDING, RunStatus.RUNNING) or (
        apply is not None and apply.status in APPLY_IN_FLIGHT
    )


def diffs_of(view: RunView, folder: Path) -> list[DiffOfFile]:
    """Every changed file side by side, each new line marked that repeats the conversation frozen in ``folder``."""
    compared = [(change, side_by_side(change.before, change.draft)) for change in view.changes]
    blocks = [block for _, found in compared for block in _new_lines(found.rows)]
    messages = _messages(folder) if blocks else []
    sources = sources_of([[row.new for row in block] for block in blocks], messages)
    marks = {
        id(row): source
        for block, of_block in zip(blocks, sources, strict=True)
        for row, source in zip(block, of_block, strict=True)
    }
    return [_diff_of(change, found, view, marks) for change, found in compared]


def _new_lines(rows: Sequence[DiffRow]) -> list[list[DiffRow]]:
    """Added and changed lines that stand together."""
    blocks: list[list[DiffRow]] = [[]]
    for row in rows:
        if row.kind in ("add", "change"):
            blocks[-1].append(row)
        elif row.kind != "remove" and blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _diff_of(
    change: FileChange, found: SideBySide, view: RunView, marks: Mapping[int, Source | None]
) -> DiffOfFile:
    judged = _category(view, change.rel)
    return DiffOfFile(
        rel=change.rel,
        category=judged.get("category", ""),
        why=judged.get("why", ""),
        state=_state(change),
        lines=[DiffLine(row, marks.get(id(row))) for row in found.rows],
        added=found.added,
        removed=found.removed,
        cut=found.cut,
        growth=growth(change.before, change.draft),
        is_stale=change.is_stale,
    )


def _links(view: RunView) -> list[IssueLink]:
    if not view.observation:
        return []
    run = view.run
    facts = Facts(
        run=str(run),
        files=[change.rel for change in view.changes],
        score=f"{run.score_avg:.1f}" if run.score_avg is not None else "",
        version=halo_version(),
    )
    return issue_links(view.observation, facts, workspace=run.workspace.paths.root)


def growth(before: bytes | None, after: bytes | None) -> str:
    if not before:
        return "new file"
    if after is None:
        return "removed"
    change = round(100 * (len(after) - len(before)) / len(before))
    return "same length" if change == 0 else f"{abs(change)} % {'longer' if change > 0 else 'shorter'}"


def _state(change: FileChange) -> str:
    if change.has_landed:
        return "landed; shown against what it was made on"
    return "against the live file of now"


def _category(view: RunView, rel: str) -> dict[str, str]:
    for item in (view.verdict or {}).get("changes", ()):
        if isinstance(item, dict) and item.get("rel") == rel:
            return {key: str(value) for key, value in item.items()}
    return {}


def _messages(folder: Path) -> list[Message]:
    try:
        return read_messages(folder)
    except FrozenUnreadable:
        return []  # a conversation that was damaged marks nothing; the page says elsewhere what is missing


def _answers(view: RunView) -> list[tuple[str, str, str]]:
    """Title, text, and what stands there when there is no text."""
    control = "The control run was switched off or gave no answer."
    shown = [
        ("What was really answered", view.answers.baseline, "Not found yet."),
        ("Test message, today's prompts (control)", view.answers.control, control),
        ("Test message, with the change", view.answers.dry_run, "No answer yet."),
    ]
    if view.answers.regression:
        shown.append(("After the merge (regression)", view.answers.regression, ""))
    return shown if any(text for _, text, _ in shown) else []


def _bars(score: ScoreSummary) -> list[Bar]:
    names = ("lint", "behavior", "scope")
    figures = {name: [asdict(sample)[name] for sample in score.samples] for name in names}
    shown = asdict(score.shown)
    return [Bar(name, shown[name], min(figures[name]), max(figures[name])) for name in names]


def _checks(score: ScoreSummary) -> list[tuple[str, str, bool]]:
    return [(_CHECK_WORDS.get(name, name), word, word in _GOOD) for name, word in score.shown.checks.items()]


def logs_of(files: AttemptFiles, order: Order) -> list[Text]:
    """The ends of what the attempt's agents and its wrapper wrote."""
    found = [tail_of(files.child_log, "Agent log"), tail_of(order.log, "Wrapper log")]
    return [log for log in found if log is not None and log.text]
