"""A change of status: one conditional update whose row count decides, and its event, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import models, transaction

from core.db.models import record_event
from core.db.text import storable


class UnknownMoveError(Exception):
    """Code asked for a move that the table of moves doesn't hold: a programming error, never a race."""


def move(
    rows: models.QuerySet[Any],
    *,
    row_id: str,
    source: str,
    target: str,
    moves: Collection[tuple[str, str]],
    event_kind: str,
    values: Mapping[str, Any],
    now: datetime,
    detail: Mapping[str, Any] | None = None,
) -> bool:
    """Move one row from status ``source`` to ``target`` if it still is what ``rows`` filters for.

    ``rows`` carries the rest of the WHERE (attempt, heartbeat, current apply). False: somebody else was
    faster, and nothing was written.
    ``detail`` goes into the event beside the statuses. Raises UnknownMoveError for a pair outside ``moves``.
    """
    if (source, target) not in moves:
        raise UnknownMoveError(f"{rows.model.__name__}: {source} → {target}")
    with transaction.atomic():
        if not rows.filter(pk=row_id, status=source).update(status=target, **storable(dict(values))):
            return False
        row = rows.model._default_manager.filter(pk=row_id).values("workspace_id", "attempts").get()
        record_event(
            kind=event_kind,
            object_id=row_id,
            workspace_id=row["workspace_id"],
            payload={"from": source, "to": target, "attempt": row["attempts"], **(detail or {})},
            now=now,
        )
    return True
