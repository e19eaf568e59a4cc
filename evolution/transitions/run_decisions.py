"""What people decide on runs. Each carries what the person saw; something else by now is refused as ``changed``.

The checks that need more than the row (permission, four eyes, archive, snapshot) are the verbs' own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from core.db.models import process_values
from core.db.text import storable
from core.ids import new_row_id
from evolution.claim import RunSeen
from evolution.errors import Refused
from evolution.hints import hint_values
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_UNSUCCESSFUL, RunStatus
from evolution.transitions._moves import Person, changed_since, move_row, released_values


def approve(
    *, runs: Sequence[RunSeen], workspace_id: int, user: Person, hint: str = "", now: datetime
) -> str:
    """Approve one or more runs of a workspace into one new apply, all or none; the apply's id.

    Raises Refused ``changed`` (details: ``run``), naming the first run that isn't as it was seen.
    """
    apply_id = new_row_id()
    with transaction.atomic():
        apply = EvolutionApply.objects.create(
            id=apply_id,
            workspace_id=workspace_id,
            approved_by_id=user.pk,
            reviewer_hint=storable(hint),
            created_at=now,
        )
        for seen in sorted(runs, key=lambda seen: seen.run_id):
            _decide(
                seen,
                target=RunStatus.APPROVED,
                user=user,
                now=now,
                rows=EvolutionRun.objects.filter(workspace_id=workspace_id),
                values={"current_apply_id": apply_id, "decision_reason": hint},
                detail={"apply": apply_id},
            )
        apply.source_runs.set(EvolutionRun.objects.filter(pk__in=[seen.run_id for seen in runs]))
    return apply_id


def reject(*, run: RunSeen, user: Person, reason: str, now: datetime) -> None:
    """Raises Refused ``changed``."""
    _decide(
        run,
        target=RunStatus.REJECTED,
        user=user,
        now=now,
        rows=EvolutionRun.objects.all(),
        values={"decision_reason": reason, "finished_at": now},
    )


def _decide(
    seen: RunSeen,
    *,
    target: RunStatus,
    user: Person,
    now: datetime,
    rows: QuerySet[EvolutionRun],
    values: Mapping[str, Any],
    detail: Mapping[str, Any] | None = None,
) -> None:
    rows, source = _as_seen(rows, seen)
    moved = move_row(
        rows,
        row_id=seen.run_id,
        source=source,
        target=target,
        now=now,
        values={"decided_by_id": user.pk, "decided_at": now, **values},
        detail={"by": user.pk, **(detail or {})},
    )
    if not moved:
        raise changed_since("run", seen.run_id)


def _as_seen(rows: QuerySet[EvolutionRun], seen: RunSeen) -> tuple[QuerySet[EvolutionRun], RunStatus]:
    rows = rows.filter(attempts=seen.attempt)
    if seen.apply_id is None:
        return rows, RunStatus.AWAITING_REVIEW
    return _with_ended_apply(rows, seen.apply_id), RunStatus.APPROVED


def _with_ended_apply(rows: QuerySet[EvolutionRun], apply_id: str) -> QuerySet[EvolutionRun]:
    # An apply never leaves these statuses, so the subquery can't go out of date before the update.
    return rows.filter(current_apply_id=apply_id, current_apply__status__in=sorted(APPLY_UNSUCCESSFUL))


def retry(
    *,
    run_id: str,
    source: RunStatus,
    attempt: int,
    hint: str | None,
    user: Person,
    now: datetime,
    archived: bool = False,
) -> None:
    """Back to the queue with ``hint`` (None: the person chose to keep the old one) and a fresh budget.

    Whoever gave the hint in force has asked as well, and stays named whoever decides on the run later.

    ``archived``: it is, and its folder was unpacked; one that the archive pass takes meanwhile has changed.
    Raises Refused ``changed``, or ``already_pending`` when the same request waits already.
    """
    rows = EvolutionRun.objects.filter(attempts=attempt, archived_at__isnull=not archived)
    if source == RunStatus.APPROVED:
        rows = rows.filter(current_apply__status__in=sorted(APPLY_UNSUCCESSFUL))
    try:
        with transaction.atomic():
            moved = move_row(
                rows,
                row_id=run_id,
                source=source,
                target=RunStatus.PENDING,
                now=now,
                values={
                    **_FRESH_RUN,
                    **released_values(),
                    "attempts_base": F("attempts"),
                    **({} if hint is None else {**hint_values(hint), "hint_by_id": user.pk}),
                    "decided_by_id": user.pk,
                    "decided_at": now,
                    "decision_reason": "retry" if hint is None else "retry with a new hint",
                },
                detail={"by": user.pk},
            )
    except IntegrityError as error:
        raise Refused(
            "already_pending",
            "A run of this session with the same hint is waiting already; cancel it or give another hint.",
        ) from error
    if not moved:
        raise changed_since("run", run_id)


_FRESH_RUN: dict[str, Any] = {
    "current_apply": None,
    "phase": "",
    "progress": {},
    "finished_at": None,
    "failure_reason": "",
    "archived_at": None,
    "skip_reason": "",
    "auto_reason": "",
    "has_observation": False,
    "score_lint": None,
    "score_behavior": None,
    "score_scope": None,
    "score_avg": None,
    "score_confidence": "",
    "score_spread": None,
}


def cancel_run(*, run_id: str, user: Person, now: datetime) -> None:
    """Pending or running; its wrapper stops at its next look. Raises Refused ``not_cancellable``."""
    for source in (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.PENDING):  # it may move while we look
        if move_row(
            EvolutionRun.objects.all(),
            row_id=run_id,
            source=source,
            target=RunStatus.CANCELLED,
            now=now,
            values={
                "finished_at": now,
                "decided_by_id": user.pk,
                "decided_at": now,
                "decision_reason": "cancel",
                **process_values(None),
            },
            detail={"by": user.pk},
        ):
            return
    raise Refused("not_cancellable", "Only a pending or running run can be cancelled.")
