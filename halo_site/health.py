"""Whether this process can work, and whether it may be sent requests, for whoever watches it.

Says nothing a stranger may not know.
"""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from core import clock
from halo_site.ticking import INTERVAL_SEC, last_tick

_migrated = False


def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers and ticks come; else 503 and the part that doesn't work."""
    parts = {"database": _database_answers(), "ticks": _ticks_come()}
    healthy = all(parts.values())
    return JsonResponse({"status": "ok" if healthy else "failing", **parts}, status=200 if healthy else 503)


def readyz(request: HttpRequest) -> JsonResponse:
    """200 once the database answers and has every table this version needs; else 503 and what is missing."""
    answers = _database_answers()
    parts = {"database": answers, "tables": answers and _is_migrated()}
    ready = all(parts.values())
    return JsonResponse({"status": "ready" if ready else "not ready", **parts}, status=200 if ready else 503)


def _is_migrated() -> bool:
    """Asked until it is so; a migrated database stays one while this process runs."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _migrated


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _ticks_come() -> bool:
    """True before the first tick of a process that only just started."""
    latest = last_tick()
    return latest is None or (clock.now() - latest).total_seconds() < 12 * INTERVAL_SEC
