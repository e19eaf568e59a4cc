"""Rows whose time is over: archived, then purged. Conditional like every move; files follow, never go first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from core.db.models import record_event
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_FINAL, RUN_FINAL
from evolution.transitions._moves import APPLY_EVENT, RUN_EVENT

Row = EvolutionRun | EvolutionApply


def mark_archived(row: Row, *, now: datetime) -> bool:
    """False: it isn't as ``row`` was read any more (retried, rolled back, archived by another, gone)."""
    with transaction.atomic():
        if not _as_read(row).update(archived_at=now):
            return False
        _tell(row, {"archived": True}, now=now)
    return True


def purge(row: Row, *, now: datetime) -> bool:
    """Delete the row. False: it isn't as it was read, or an apply is still named by a run.

    What its landing left to the ratchet stays: a scenario owns its texts.
    """
    with transaction.atomic():
        rows = list(_as_read(row).select_for_update())
        if not rows or (isinstance(row, EvolutionApply) and _is_needed(row)):
            return False
        _tell(row, {"deleted": True, "purged": True}, now=now)
        rows[0].delete()
    return True


def _is_needed(apply: EvolutionApply) -> bool:
    active = apply.source_runs.exclude(status__in=sorted(RUN_FINAL))
    return apply.current_runs.exists() or active.exists()


def _as_read(row: Row) -> QuerySet[Any]:
    final = RUN_FINAL if isinstance(row, EvolutionRun) else APPLY_FINAL
    rows = type(row)._default_manager.filter(
        pk=row.pk, status=row.status, status__in=sorted(final), attempts=row.attempts
    )
    if row.archived_at is None:
        return rows.filter(archived_at__isnull=True)
    return rows.filter(archived_at=row.archived_at)


def _tell(row: Row, payload: dict[str, object], *, now: datetime) -> None:
    kind = RUN_EVENT if isinstance(row, EvolutionRun) else APPLY_EVENT
    record_event(kind=kind, object_id=row.pk, workspace_id=row.workspace_id, payload=payload, now=now)
