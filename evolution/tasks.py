"""What the django-q2 cluster calls: one thing each, safe to repeat and to miss. The only file that imports it."""

from __future__ import annotations

from datetime import datetime

from django_q.models import Schedule, Success

from evolution import ticker

_TICK = "evolution.tasks.tick"


def tick() -> None:
    ticker.tick()


def ensure_schedules() -> None:
    """The ticker every minute; a schedule that a person changed keeps their rhythm."""
    Schedule.objects.get_or_create(
        name="evolution tick", defaults={"func": _TICK, "schedule_type": Schedule.MINUTES, "minutes": 1}
    )


def last_tick() -> datetime | None:
    """When a cluster last finished a tick; None when none has yet."""
    stopped: datetime | None = (
        Success.objects.filter(func=_TICK).order_by("-stopped").values_list("stopped", flat=True).first()
    )
    return stopped
