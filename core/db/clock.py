"""The database's clock: the one that decides between processes and hosts."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    """Aware, UTC; on SQLite milliseconds, on PostgreSQL microseconds, also inside a long transaction."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT clock_timestamp()")
            return cursor.fetchone()[0].astimezone(UTC)
        cursor.execute("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0]).replace(tzinfo=UTC)
