"""What every transition is made of: the two tables bound to their models, and the columns a move resets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Protocol

from django.db.models import F, Model, QuerySet

from core.db.models import process_values
from core.db.transitions import move
from evolution.errors import ClaimLost, Refused
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_MOVES, RUN_MOVES, ApplyStatus, RunStatus

RUN_EVENT = "evolution:run_changed"
APPLY_EVENT = "evolution:apply_changed"
PROGRESS_EVENT = "evolution:progress"


class Person(Protocol):
    """A user row."""

    pk: Any


_TABLES: Mapping[type[Model], tuple[Collection[tuple[str, str]], str]] = {
    EvolutionRun: (RUN_MOVES, RUN_EVENT),
    EvolutionApply: (APPLY_MOVES, APPLY_EVENT),
}


def move_row(
    rows: QuerySet[Any],
    *,
    row_id: str,
    source: str,
    target: str,
    now: datetime,
    values: Mapping[str, Any],
    detail: Mapping[str, Any] | None = None,
) -> bool:
    """A run's or an apply's move, by its own table and with its own event; see ``core.db.transitions.move``."""
    moves, event_kind = _TABLES[rows.model]
    return move(
        rows,
        row_id=row_id,
        source=source,
        target=target,
        moves=moves,
        event_kind=event_kind,
        values=values,
        now=now,
        detail=detail,
    )


def claimed_values(now: datetime) -> dict[str, Any]:
    """The columns of a fresh claim: one attempt more, a fresh heartbeat, no process, no old reason."""
    return {
        "attempts": F("attempts") + 1,
        "started_at": now,
        "heartbeat_at": now,
        "finished_at": None,
        "failure_reason": "",
        **process_values(None),
    }


def released_values() -> dict[str, Any]:
    """The columns of a row that nobody works."""
    return {"started_at": None, "heartbeat_at": None, **process_values(None)}


def held(written: bool, *, row_id: str) -> None:
    """Raise ClaimLost unless a wrapper's own write found its claim."""
    if not written:
        raise ClaimLost(f"{row_id} is no longer this wrapper's: it was taken over, cancelled or finished.")


def changed_since(kind: str, row_id: str) -> Refused:
    """What a person decided on is not what the row is now."""
    return Refused(
        "changed", f"{kind}-{row_id} has changed since it was shown; look at it again.", row=row_id
    )


def send_runs_back(apply: EvolutionApply, *, now: datetime) -> None:
    """An auto apply that came to nothing: its runs wait for a reviewer again."""
    if not apply.is_auto:
        return
    for run_id in _runs_of(apply.pk, RunStatus.APPROVED):
        move_row(
            EvolutionRun.objects.filter(current_apply_id=apply.pk),
            row_id=run_id,
            source=RunStatus.APPROVED,
            target=RunStatus.AWAITING_REVIEW,
            now=now,
            values={},
            detail={"apply": apply.pk},
        )


def carry_runs(apply_id: str, *, source: RunStatus, target: RunStatus, now: datetime) -> list[str]:
    """Move the runs that still stand for this apply along with it; their ids, in id order."""
    carried = []
    for run_id in _runs_of(apply_id, source):
        if move_row(
            EvolutionRun.objects.filter(current_apply_id=apply_id),
            row_id=run_id,
            source=source,
            target=target,
            now=now,
            values={"finished_at": now},
            detail={"apply": apply_id},
        ):
            carried.append(run_id)
    return carried


def end_apply(
    rows: QuerySet[Any],
    *,
    apply_id: str,
    source: str,
    target: ApplyStatus,
    now: datetime,
    values: Mapping[str, Any],
    detail: Mapping[str, Any] | None = None,
) -> bool:
    """An unsuccessful end; the runs of an apply that gates let through go back. Call it in a transaction."""
    if not move_row(
        rows,
        row_id=apply_id,
        source=source,
        target=target,
        now=now,
        values={"finished_at": now, **values},
        detail=detail,
    ):
        return False
    send_runs_back(EvolutionApply.objects.only("id", "approved_by_id").get(pk=apply_id), now=now)
    return True


def _runs_of(apply_id: str, status: RunStatus) -> list[str]:
    runs = EvolutionRun.objects.filter(current_apply_id=apply_id, status=status)
    return list(runs.order_by("id").values_list("id", flat=True))
