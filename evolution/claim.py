"""Who may write a row: a claim as its wrapper holds it, and a row as the ticker or a person saw it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet

from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import ApplyStatus, RunStatus
from workspaces.publish_lock import LockOwner

Kind = Literal["run", "apply"]


@dataclass(frozen=True, slots=True)
class Claim:
    """(id, status, attempt): every write of a wrapper is conditional on all three.

    A row that is marked for a person, or waits for a slot after "Try again", is nobody's claim.
    """

    kind: Kind
    row_id: str
    status: str
    attempt: int

    def rows(self) -> QuerySet[Any]:
        """The row, or nothing once the claim is lost."""
        if self.kind == "run":
            return EvolutionRun.objects.filter(pk=self.row_id, status=self.status, attempts=self.attempt)
        return EvolutionApply.objects.filter(
            pk=self.row_id,
            status=self.status,
            attempts=self.attempt,
            needs_person__isnull=True,
            started_at__isnull=False,
        )

    def at(self, status: str) -> Claim:
        """The same wrapper's claim after it moved the row itself."""
        return replace(self, status=status)


def run_claim(run_id: str, attempt: int) -> Claim:
    return Claim("run", run_id, RunStatus.RUNNING, attempt)


def apply_claim(apply_id: str, attempt: int, status: str = ApplyStatus.RUNNING) -> Claim:
    return Claim("apply", apply_id, status, attempt)


_AT_THE_LOCK = {
    "apply": (ApplyStatus.RUNNING, ApplyStatus.SYNCING),
    "rollback": (ApplyStatus.ROLLING_BACK,),
}


def has_lost_its_claim(holder: LockOwner) -> bool:
    """Whether the row that a workspace is locked for is another wrapper's by now, so that this one may be ended."""
    statuses = _AT_THE_LOCK[holder.kind]
    return not any(apply_claim(holder.row_id, holder.attempt, status).rows().exists() for status in statuses)


@dataclass(frozen=True, slots=True)
class Observed:
    """A row in flight as the ticker read it: whatever it then writes holds only if no beat came between."""

    claim: Claim
    heartbeat_at: datetime | None
    process_pid: int | None

    @classmethod
    def of(cls, row: EvolutionRun | EvolutionApply) -> Observed:
        kind: Kind = "run" if isinstance(row, EvolutionRun) else "apply"
        return cls(Claim(kind, row.pk, row.status, row.attempts), row.heartbeat_at, row.process_pid)

    def rows(self) -> QuerySet[Any]:
        rows = self.claim.rows()
        if self.heartbeat_at is None:
            rows = rows.filter(heartbeat_at__isnull=True)
        else:
            rows = rows.filter(heartbeat_at=self.heartbeat_at)
        if self.process_pid is None:
            return rows.filter(process_pid__isnull=True)
        return rows.filter(process_pid=self.process_pid)


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run as the page showed it to the person who decides.

    ``apply_id`` is the run's current apply when it stood at ``approved`` (that apply failed, timed out or was
    cancelled), else None.
    """

    run_id: str
    attempt: int
    apply_id: str | None = None
