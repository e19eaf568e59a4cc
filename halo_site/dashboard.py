"""What the first page shows, in at most a dozen reads whose cost doesn't grow with the rows of the past."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Q

from core.db.models import Event
from core.ids import first_row_id_at
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_HOLDS_WORKSPACE, APPLY_UNSUCCESSFUL, ApplyStatus, RunStatus
from halo_site.dashboard_health import Health, look
from halo_site.dashboard_tokens import TokenChart, read_tokens
from sessions_app.models import Session
from workspaces.models import Workspace

SHOWN = 6
EVENTS_SHOWN = 10
WORKSPACES_SHOWN = 12
_RUN_STEPS = ("draft", "dry_run", "control", "score")
_APPLY_STEPS = ("merge", "regress", "syncing")
_AHEAD_OF_STEPS = frozenset({"", "sandbox", "preflight"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row that goes on only when a person decides; ``why`` in a few words."""

    row: EvolutionRun | EvolutionApply
    why: str
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Working:
    """``steps``: for each phase ``done``, ``now`` or empty; ``doing`` says the same in words."""

    row: EvolutionRun | EvolutionApply
    kind: str
    doing: str
    steps: list[str]
    elapsed: timedelta


@dataclass(frozen=True, slots=True)
class Landed:
    """Applies asked for in the last seven days that reached the live surface."""

    total: int
    by_gate: int
    rolled_back: int


@dataclass(frozen=True, slots=True)
class Place:
    workspace: Workspace
    folder_missing: bool
    agents: int
    sessions_live: int


@dataclass(frozen=True, slots=True)
class Dashboard:
    now: datetime
    health: Health
    landed: Landed
    waiting_total: int
    queued_total: int
    waiting: list[Waiting] = field(default_factory=list)
    working: list[Working] = field(default_factory=list)
    queued: list[EvolutionRun | EvolutionApply] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    tokens: TokenChart = field(default_factory=TokenChart)

    @property
    def waiting_more(self) -> int:
        return self.waiting_total - len(self.waiting)

    @property
    def queued_more(self) -> int:
        return self.queued_total - len(self.queued)


def read_dashboard(*, now: datetime) -> Dashboard:
    runs = EvolutionRun.objects.select_related("workspace")
    applies = EvolutionApply.objects.select_related("workspace").order_by("id")
    counts = dict(
        EvolutionRun.objects.filter(status__in=[RunStatus.PENDING, RunStatus.AWAITING_REVIEW])
        .values_list("status")
        .annotate(Count("id"))
    )
    stuck = list(applies.filter(status__in=sorted(APPLY_HOLDS_WORKSPACE), needs_person__isnull=False))
    failed = list(
        runs.select_related("current_apply")
        .filter(status=RunStatus.APPROVED, current_apply__status__in=sorted(APPLY_UNSUCCESSFUL))
        .order_by("id")[: 10 * SHOWN]
    )
    in_review = runs.filter(status=RunStatus.AWAITING_REVIEW).order_by("id")[:SHOWN]
    waiting = [
        *(Waiting(apply, "stands still, needs a person", urgent=True) for apply in stuck),
        *(Waiting(run, f"its apply {_failed_word(run)}", urgent=True) for run in failed),
        *(Waiting(run, _review_word(run)) for run in in_review),
    ]
    pending_applies = list(applies.filter(status=ApplyStatus.PENDING)[: 10 * SHOWN])
    pending_runs = runs.filter(status=RunStatus.PENDING).order_by("id")[:SHOWN]
    queued: list[EvolutionRun | EvolutionApply] = [*pending_applies, *pending_runs]
    return Dashboard(
        now=now,
        health=look(now=now),
        landed=_landed(now),
        waiting_total=len(stuck) + len(failed) + counts.get(RunStatus.AWAITING_REVIEW, 0),
        queued_total=len(pending_applies) + counts.get(RunStatus.PENDING, 0),
        waiting=waiting[:SHOWN],
        working=[*_runs_at_work(now), *_applies_at_work(now)],
        queued=queued[:SHOWN],
        events=list(Event.objects.order_by("-id")[:EVENTS_SHOWN]),
        places=list(_places(now)),
        tokens=read_tokens(now=now),
    )


def _failed_word(run: EvolutionRun) -> str:
    apply = run.current_apply
    if apply is None or apply.status == ApplyStatus.FAILED:
        return "failed"
    return "timed out" if apply.status == ApplyStatus.TIMEOUT else "was cancelled"


def _review_word(run: EvolutionRun) -> str:
    return "to review" if run.score_avg is None else f"to review, score {run.score_avg:.0f}"


def _runs_at_work(now: datetime) -> Iterable[Working]:
    rows = EvolutionRun.objects.select_related("workspace").filter(status=RunStatus.RUNNING).order_by("id")
    for row in rows:
        yield Working(
            row, "run", doing=_doing(row), steps=_steps(_RUN_STEPS, row.phase), elapsed=_elapsed(row, now)
        )


def _applies_at_work(now: datetime) -> Iterable[Working]:
    rows = (
        EvolutionApply.objects.select_related("workspace")
        .filter(status__in=sorted(APPLY_HOLDS_WORKSPACE), needs_person__isnull=True)
        .annotate(sources=Count("source_runs"))
        .order_by("id")
    )
    for row in rows:
        count = f"{row.sources} runs" if row.sources != 1 else "one run"
        if row.status == ApplyStatus.ROLLING_BACK:
            yield Working(row, f"rollback of {count}", "rolling back", ["now"], _elapsed(row, now))
            continue
        at = "syncing" if row.status == ApplyStatus.SYNCING else row.phase
        yield Working(row, f"apply of {count}", _doing(row, at), _steps(_APPLY_STEPS, at), _elapsed(row, now))


def _doing(row: EvolutionRun | EvolutionApply, phase: str = "") -> str:
    if row.started_at is None:
        return "waits for a slot"
    words = (phase or row.phase or "starting").replace("_", " ").replace("syncing", "publishing")
    progress = row.progress if isinstance(row.progress, dict) else {}
    total = progress.get("total")
    return f"{words} {progress.get('done', 0)}/{total}" if total else words


def _steps(names: tuple[str, ...], phase: str) -> list[str]:
    past_all = -1 if phase in _AHEAD_OF_STEPS else len(names)
    at = names.index(phase) if phase in names else past_all
    return ["done" if index < at else "now" if index == at else "" for index in range(len(names))]


def _elapsed(row: EvolutionRun | EvolutionApply, now: datetime) -> timedelta:
    return max(now - (row.started_at or row.created_at), timedelta())


def _landed(now: datetime) -> Landed:
    found = EvolutionApply.objects.filter(
        status__in=[ApplyStatus.APPLIED, ApplyStatus.ROLLED_BACK],
        id__gte=first_row_id_at(now - timedelta(days=7)),
    ).aggregate(
        total=Count("id"),
        by_gate=Count("id", filter=Q(approved_by=None)),
        rolled_back=Count("id", filter=Q(status=ApplyStatus.ROLLED_BACK)),
    )
    return Landed(found["total"], found["by_gate"], found["rolled_back"])


def _places(now: datetime) -> Iterable[Place]:
    workspaces = list(Workspace.objects.order_by("path")[:WORKSPACES_SHOWN])
    live = dict(
        Session.objects.filter(
            workspace__in=workspaces, last_activity_at__gte=now - timedelta(days=1), lease_expires_at__gt=now
        )
        .values_list("workspace_id")
        .annotate(Count("id"))
    )
    for workspace in workspaces:
        agents = _agents_in(workspace)
        yield Place(workspace, agents is None, agents or 0, live.get(workspace.pk, 0))


def _agents_in(workspace: Workspace) -> int | None:
    """Folders under ``agents/``; None when the workspace isn't there or may not be looked into."""
    folder = workspace.paths.halo
    try:
        if not folder.is_dir():
            return None
        return sum(1 for entry in (folder / "agents").iterdir() if entry.is_dir())
    except FileNotFoundError:
        return 0
    except OSError:
        return None
