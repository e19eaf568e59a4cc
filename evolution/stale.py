"""Whether the wrapper of a row in flight still works, and ending one that doesn't."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta

from evolution.models import EvolutionApply, EvolutionRun

REPORTS_WITHIN = timedelta(seconds=30)
"""A wrapper writes who it is this soon after the claim, or it never started."""


def why_stale(row: EvolutionRun | EvolutionApply, *, now: datetime, timeout: timedelta) -> str:
    """Why nobody works the row any more, for people; empty while somebody does."""
    if row.started_at is None:
        return ""  # it waits for a slot
    last_sign = row.heartbeat_at or row.started_at
    if now - last_sign > timeout:
        minutes = int((now - last_sign).total_seconds() // 60)
        return f"no heartbeat for {minutes} minutes"
    if row.process is None:
        # Begun in the future, the clock was set back since: how long ago can't be told, and another try is cheap.
        waits = abs(now - row.started_at) <= REPORTS_WITHIN
        return "" if waits else "its wrapper never reported"
    if row.process.is_local and not row.process.is_alive():
        return f"its wrapper (process {row.process.pid}) is gone"
    return ""


def is_ahead(row: EvolutionRun | EvolutionApply, *, now: datetime) -> bool:
    """Whether its last sign of life lies in the future: the clock was set back since, and its age can't be told."""
    return row.started_at is not None and (row.heartbeat_at or row.started_at) > now


def end_process(row: EvolutionRun | EvolutionApply) -> None:
    """SIGKILL a stale wrapper that still lives on this host; a process that reused its pid is left alone."""
    if row.process is not None and row.process.is_local:
        row.process.send(signal.SIGKILL)
