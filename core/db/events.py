"""Reading ``Event`` rows in the order in which they became visible, and forgetting old ones.

On SQLite that order is ``id``: one writer at a time. On PostgreSQL an id says nothing about who commits
first, so the order is (transaction, id), and only rows of transactions below the oldest running one are
read: nothing can appear before them any more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from django.db import connection
from django.db.models import Q, QuerySet

from core.db.models import Event

KEPT = timedelta(days=1)
PRUNED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """``transaction`` is 0 on SQLite."""

    transaction: int
    event_id: int


START = Position(0, 0)


def position_of(event: Event) -> Position:
    return Position(event.transaction_id if connection.vendor == "postgresql" else 0, event.id)


def latest() -> Position:
    """Where whoever asks now stands; START while there is no event."""
    event = _ordered(_settled(), newest_first=True).first()
    return START if event is None else position_of(event)


def find_position(event_id: int) -> Position | None:
    """The position of an event that a reader has seen; None when it isn't kept any more (or never was).

    0 is the position of a reader who saw a database without events.
    """
    if event_id == 0:
        first = _ordered(_settled()).first()
        return START if first is None or first.id == 1 else None
    event = _settled().filter(pk=event_id).first()
    return None if event is None else position_of(event)


def read_after(position: Position, *, limit: int, topics: Collection[str] | None = None) -> list[Event]:
    """The next events, oldest first; ``topics`` are the parts of kinds before the colon."""
    rows = _settled()
    if connection.vendor == "postgresql":
        rows = rows.filter(transaction_id__gte=position.transaction).filter(
            Q(transaction_id__gt=position.transaction) | Q(id__gt=position.event_id)
        )
    else:
        rows = rows.filter(id__gt=position.event_id)
    if topics is not None:
        wanted = Q(pk__in=[])
        for topic in topics:
            wanted |= Q(kind__startswith=f"{topic}:")
        rows = rows.filter(wanted)
    return list(_ordered(rows)[:limit])


def prune(*, now: datetime) -> int:
    """Delete up to PRUNED_AT_ONCE rows, oldest first, as long as they are older than a day; returns how many.

    The newest row stays, however old: it is what a reader who missed nothing has seen.
    """
    oldest = _ordered(_settled()).first()
    if oldest is None or oldest.created_at >= now - KEPT:
        return 0
    rows = _ordered(_settled()).values_list("pk", "created_at")[: PRUNED_AT_ONCE + 1]
    old = takewhile(lambda row: row[1] < now - KEPT, list(rows)[:-1])
    deleted, _ = Event.objects.filter(pk__in=[pk for pk, _ in old]).delete()
    return deleted


def _settled() -> QuerySet[Event]:
    rows = Event.objects.all()
    if connection.vendor == "postgresql":
        return rows.extra(where=["transaction_id < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"])
    return rows


def _ordered(rows: QuerySet[Event], *, newest_first: bool = False) -> QuerySet[Event]:
    names = ("transaction_id", "id") if connection.vendor == "postgresql" else ("id",)
    return rows.order_by(*(f"-{name}" for name in names)) if newest_first else rows.order_by(*names)
