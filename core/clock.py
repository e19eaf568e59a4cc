"""The only module that reads a clock; everything else is handed the time.

Times that decide between machines come from the database's clock (``core.db.clock``).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> datetime:
    """This machine's wall clock, aware, in UTC."""
    return datetime.now(UTC)


def suspended_seconds() -> float:
    """Seconds since boot, counting the time the machine slept.

    ``time.monotonic`` stops while a laptop sleeps; a deadline kept by it would let a wrapper write after
    others have taken its row.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def stamp(moment: datetime) -> str:
    """``2026-01-31T09:30:00.123Z``: UTC, milliseconds, sorts as text."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
