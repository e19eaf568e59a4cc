"""Whether this process lives, and whether it may be sent requests, for whoever watches it.

Says nothing a stranger may not know.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import Error as AnyDatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from core import clock
from core.db.push import layer_answers
from evolution import tasks
from halo_site.ticking import INTERVAL_SEC, last_tick

_migrated = False
_loaded_at = clock.now()


def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as this process answers: what it needs beside itself is no reason to end it."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 while all that a request may need is there; else 503, and false beside what isn't."""
    parts = {
        "database": _asked(_database_answers),
        "tables": _asked(_is_migrated),
        "channel_layer": layer_answers(),
        "ticks": _ticks_come(),
        "cluster": _asked(_cluster_ticks),
        "schedules": _asked(lambda: tasks.schedules_are_present(now=clock.now())),
    }
    ready = all(parts.values())
    return JsonResponse({"status": "ready" if ready else "not ready", **parts}, status=200 if ready else 503)


def _asked(question: Callable[[], bool]) -> bool:
    """False as well when the database can't be asked, or has no such table."""
    try:
        return question()
    except AnyDatabaseError:
        return False


def _database_answers() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


def _is_migrated() -> bool:
    """Asked until it is so; a migrated database stays one while this process runs."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _migrated


def _ticks_come() -> bool:
    """This process's own. True before the first of a process that only just started."""
    latest = last_tick()
    return latest is None or (clock.now() - latest).total_seconds() < 12 * INTERVAL_SEC


def _cluster_ticks() -> bool:
    """True where there is no cluster (the web processes tick in any case), and for one that starts with us."""
    now = clock.now()
    silent = tasks.cluster_silence(now=now)
    return silent is None or min(silent, now - _loaded_at) <= tasks.CLUSTER_WITHIN
