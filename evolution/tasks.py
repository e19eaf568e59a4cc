"""What the django-q2 cluster calls: one thing each, safe to repeat and to miss. The only file that imports it."""

from __future__ import annotations

from datetime import datetime

from django_q.models import Schedule, Success
from django_q.tasks import async_task

from evolution import ticker
from evolution.archive import archive as archive_pass

_TICK = "evolution.tasks.tick"
_ARCHIVE = "evolution.tasks.archive"
_SLICE_SEC = 60.0
"""Well below the time after which the cluster ends a task; what is left goes into another one."""


def tick() -> None:
    ticker.tick()


def archive() -> None:
    report = archive_pass(seconds=_SLICE_SEC)
    if report.unfinished and report.did_something:
        async_task(_ARCHIVE)


def ensure_schedules() -> None:
    """The ticker every minute, the archive once a day; a schedule that a person changed keeps their rhythm."""
    Schedule.objects.get_or_create(
        name="evolution tick", defaults={"func": _TICK, "schedule_type": Schedule.MINUTES, "minutes": 1}
    )
    Schedule.objects.get_or_create(
        name="evolution archive", defaults={"func": _ARCHIVE, "schedule_type": Schedule.DAILY}
    )


def last_tick() -> datetime | None:
    """When a cluster last finished a tick; None when none has yet."""
    stopped: datetime | None = (
        Success.objects.filter(func=_TICK).order_by("-stopped").values_list("stopped", flat=True).first()
    )
    return stopped
