"""Following a run or an apply until it rests: what changed since the last look, one step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evolution import ticker
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_FINAL, APPLY_HOLDS_WORKSPACE, RUN_FINAL, RunStatus

LOOK_SEC = 0.1
TICK_EVERY_SEC = 2.0
_AT_WORK = APPLY_HOLDS_WORKSPACE | {RunStatus.RUNNING}
_RUN_RESTS = RUN_FINAL | {RunStatus.AWAITING_REVIEW, RunStatus.APPROVED}


@dataclass(frozen=True, slots=True)
class Step:
    """``done`` of ``total`` is 0 of 0 where a phase can't count."""

    name: str
    status: str
    phase: str
    done: int
    total: int


def follow(
    row: EvolutionRun | EvolutionApply,
    *,
    timeout_sec: float | None = None,
    pause: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[Step]:
    """A step whenever status or phase changed, the last one at rest (or at ``timeout_sec``).

    Ticks now and then itself: where no web process and no cluster runs, following is what moves the work on.
    """
    begun = monotonic()
    ticked = float("-inf")
    latest: Step | None = None
    while True:
        if monotonic() - ticked >= TICK_EVERY_SEC:
            ticker.tick()
            ticked = monotonic()
        row.refresh_from_db()
        step = _step(row)
        if step != latest:
            latest = step
            yield step
        if _rests(row) or (timeout_sec is not None and monotonic() - begun >= timeout_sec):
            return
        pause(LOOK_SEC)


def _step(row: EvolutionRun | EvolutionApply) -> Step:
    progress = row.progress or {}
    return Step(str(row), row.status, row.phase, int(progress.get("done", 0)), int(progress.get("total", 0)))


def _rests(row: EvolutionRun | EvolutionApply) -> bool:
    if isinstance(row, EvolutionApply):
        return row.status in APPLY_FINAL or row.needs_person is not None
    return row.status in _RUN_RESTS
