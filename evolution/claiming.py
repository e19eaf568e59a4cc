"""One pass of the ticker over the rows, inside its lock: what is stale, what goes on, what begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Exists, OuterRef, Q, QuerySet

from evolution import stale, transitions
from evolution.claim import Claim, Observed
from evolution.limits import Limits
from evolution.models import EvolutionApply, EvolutionRun
from evolution.standstill import account_of
from evolution.states import APPLY_HOLDS_WORKSPACE, ApplyStatus, RunStatus

RowT = TypeVar("RowT", EvolutionRun, EvolutionApply)

_AT_WORK = Q(needs_person__isnull=True, started_at__isnull=False)
_WAITS_FOR_SLOT = Q(needs_person__isnull=True, started_at__isnull=True)


@dataclass(slots=True)
class Pass:
    """``claimed``: what wrappers have to be started for; those in ``fresh`` came from the queue.

    ``settled``: ids of stale rows that went back to the queue, timed out, or wait for a person.
    """

    now: datetime
    limits: Limits
    host: str
    claimed: list[Claim] = field(default_factory=list)
    fresh: set[Claim] = field(default_factory=set)
    settled: list[str] = field(default_factory=list)

    def settle_stale(self) -> None:
        for run in self._here(EvolutionRun.objects.filter(status=RunStatus.RUNNING)):
            if why := self._why_stale(run, self.limits.run_timeout):
                self._settle_run(run, why)
        at_work = EvolutionApply.objects.filter(_AT_WORK, status__in=sorted(APPLY_HOLDS_WORKSPACE))
        for apply in self._here(at_work):
            if why := self._why_stale(apply, self.limits.apply_timeout):
                self._settle_apply(apply, why)

    def claim_waiting(self) -> None:
        """Applies after "Try again"; a rollback takes no slot."""
        waiting = EvolutionApply.objects.filter(
            _WAITS_FOR_SLOT, status__in=[ApplyStatus.SYNCING, ApplyStatus.ROLLING_BACK]
        )
        for apply in self._here(waiting):
            if apply.status == ApplyStatus.SYNCING and not self._free_apply_slots():
                continue
            claim = transitions.resume_waiting(
                apply_id=apply.pk, status=apply.status, attempts=apply.attempts, now=self.now
            )
            self._took(claim)

    def claim_runs(self) -> None:
        free = self.limits.max_concurrent_run - EvolutionRun.objects.filter(status=RunStatus.RUNNING).count()
        if free <= 0:
            return
        pending = self._here(EvolutionRun.objects.filter(status=RunStatus.PENDING))
        for run in pending[:free]:
            claim = transitions.claim_run(run_id=run.pk, attempts=run.attempts, now=self.now)
            self._took(claim, fresh=True)

    def claim_applies(self) -> None:
        free = self._free_apply_slots()
        if free <= 0:
            return
        holds = EvolutionApply.objects.filter(
            workspace=OuterRef("workspace"), status__in=sorted(APPLY_HOLDS_WORKSPACE)
        )
        older = EvolutionApply.objects.filter(
            workspace=OuterRef("workspace"), status=ApplyStatus.PENDING, id__lt=OuterRef("id")
        )
        first_of_idle = EvolutionApply.objects.filter(
            ~Exists(holds), ~Exists(older), status=ApplyStatus.PENDING
        )
        for apply in self._here(first_of_idle)[:free]:
            claim = transitions.claim_apply(apply_id=apply.pk, attempts=apply.attempts, now=self.now)
            self._took(claim, fresh=True)

    def _why_stale(self, row: EvolutionRun | EvolutionApply, timeout: timedelta) -> str:
        """What is stale is ended; a heartbeat that the clock fell behind ages from this pass on."""
        why = stale.why_stale(row, now=self.now, timeout=timeout)
        if why:
            stale.end_process(row)
        elif stale.is_ahead(row, now=self.now):
            transitions.beat_at(Observed.of(row), now=self.now)
        return why

    def _settle_run(self, run: EvolutionRun, why: str) -> None:
        observed = Observed.of(run)
        if run.round_attempts < self.limits.max_attempts:
            done = transitions.requeue(observed, now=self.now)
        else:
            reason = self._spent(run, why)
            done = transitions.time_out_run(observed, reason=reason, now=self.now)
        if done:
            self.settled.append(run.pk)

    def _settle_apply(self, apply: EvolutionApply, why: str) -> None:
        observed, tries_left = Observed.of(apply), apply.round_attempts < self.limits.max_attempts
        if apply.status == ApplyStatus.RUNNING:
            if tries_left:
                done = transitions.requeue(observed, now=self.now)
            else:
                done = transitions.time_out_apply(observed, reason=self._spent(apply, why), now=self.now)
        elif tries_left:
            self._took(transitions.resume_apply(observed, now=self.now))
            return
        elif apply.status == ApplyStatus.SYNCING and apply.phase != transitions.RESTORING:
            reason = self._spent(apply, why)
            if transitions.begin_restoring(observed, reason=reason, drifted=(), now=self.now):
                self._took(transitions.resume_apply(observed, now=self.now))
            return
        else:
            account = account_of(apply, reason=self._spent(apply, why))
            done = transitions.mark_needs_person(observed, account=account, now=self.now)
        if done:
            self.settled.append(apply.pk)

    def _spent(self, row: EvolutionRun | EvolutionApply, why: str) -> str:
        said = f"{row.failure_reason}; " if row.failure_reason else ""
        doing = f" while {row.phase}" if row.phase else ""
        return f"{said}{why}{doing}; no tries left after {row.round_attempts}"

    def _free_apply_slots(self) -> int:
        taken = EvolutionApply.objects.filter(_AT_WORK, status__in=[ApplyStatus.RUNNING, ApplyStatus.SYNCING])
        return self.limits.max_concurrent_apply - taken.count()

    def _here(self, rows: QuerySet[RowT]) -> QuerySet[RowT]:
        return rows.filter(workspace__host=self.host).order_by("id")

    def _took(self, claim: Claim | None, *, fresh: bool = False) -> None:
        if claim is None:
            return
        self.claimed.append(claim)
        if fresh:
            self.fresh.add(claim)
