"""Which wrappers work right now, for whoever is about to stop something else."""

from __future__ import annotations

from dataclasses import dataclass

from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_HOLDS_WORKSPACE, RunStatus


@dataclass(frozen=True, slots=True)
class WrapperAtWork:
    name: str
    status: str
    phase: str
    pid: int


def wrappers_at_work() -> list[WrapperAtWork]:
    """Wrappers of this host that are alive, oldest row first."""
    rows: list[EvolutionRun | EvolutionApply] = [
        *EvolutionRun.objects.filter(status=RunStatus.RUNNING).order_by("pk"),
        *EvolutionApply.objects.filter(status__in=sorted(APPLY_HOLDS_WORKSPACE)).order_by("pk"),
    ]
    found = []
    for row in rows:
        process = row.process
        if process is not None and process.is_alive():
            found.append(WrapperAtWork(str(row), row.status, row.phase, process.pid))
    return found
