"""What the django-q2 cluster calls: one thing each, safe to repeat and to miss. The only file that imports it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django_q.models import Schedule, Success
from django_q.tasks import async_task

from evolution import ticker
from evolution.archive import archive as archive_pass

_TICK = "evolution.tasks.tick"
_ARCHIVE = "evolution.tasks.archive"
_SLICE_SEC = 60.0
"""Well below the time after which the cluster ends a task; what is left goes into another one."""
CLUSTER_WITHIN = timedelta(minutes=3)
"""Its scheduler looks every 30 s for what is due every minute."""
CLUSTER_WAS_HERE = timedelta(days=1)
"""After a longer silence there is no cluster; the web processes tick alone."""


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


def cluster_silence(*, now: datetime) -> timedelta | None:
    """How long the cluster hasn't ticked; None where there is none."""
    latest = last_tick()
    return None if latest is None or now - latest > CLUSTER_WAS_HERE else now - latest


def schedules_are_present(*, now: datetime) -> bool:
    """Whether a cluster finds all it has to do. Where none has ever been, nothing is missing."""
    found = set(Schedule.objects.filter(func__in=(_TICK, _ARCHIVE)).values_list("func", flat=True))
    return len(found) == 2 or (not found and cluster_silence(now=now) is None)


def last_tick() -> datetime | None:
    """When a cluster last finished a tick; None when none has yet."""
    stopped: datetime | None = (
        Success.objects.filter(func=_TICK).order_by("-stopped").values_list("stopped", flat=True).first()
    )
    return stopped
