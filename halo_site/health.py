"""``/healthz``: whether this process can work, for whoever watches it. Says nothing a stranger may not know."""

from __future__ import annotations

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

from core import clock
from halo_site.ticking import INTERVAL_SEC, last_tick


def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers and ticks come; else 503 and the part that doesn't work."""
    parts = {"database": _database_answers(), "ticks": _ticks_come()}
    healthy = all(parts.values())
    return JsonResponse({"status": "ok" if healthy else "failing", **parts}, status=200 if healthy else 503)


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
