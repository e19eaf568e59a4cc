"""The ticker: stateless, safe to run anywhere, any number at once.

One pass under one lock per database settles stale rows, resumes what was half way, and claims what waits;
the wrappers are started after its commit. A pass that dies in between leaves claims without a process, which
the next one finds.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import close_old_connections, connection, transaction

from core.db.clock import database_now
from core.paths import WorkspacePaths
from core.processes import host_name
from evolution import transitions
from evolution.claim import Claim
from evolution.claiming import Pass
from evolution.errors import ClaimLost
from evolution.limits import Limits
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order, SpawnFailed, spawn_wrapper
from evolution.states import APPLY_IN_FLIGHT, ApplyStatus, RunStatus

logger = logging.getLogger(__name__)

ADVISORY_LOCK = 0x48414C4F  # "HALO"


@dataclass(frozen=True, slots=True)
class TickReport:
    """What one pass did; ``started`` holds the wrappers, ``failed`` those that could not be started."""

    started: tuple[Order, ...] = ()
    failed: tuple[Order, ...] = ()
    settled: tuple[str, ...] = ()


@contextmanager
def ticker_lock() -> Iterator[None]:
    """One claim pass at a time per database; held to the end of the transaction it opens."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])
        # On SQLite the transaction itself is the lock: it begins IMMEDIATE.
        yield


def tick(
    *,
    now: datetime | None = None,
    limits: Limits | None = None,
    spawn: Callable[[Order], None] = spawn_wrapper,
) -> TickReport:
    """One pass for the workspaces of this host. ``now`` defaults to the database's clock."""
    if not _in_flight():
        return TickReport()
    with ticker_lock():
        claims = Pass(now=now or database_now(), limits=limits or Limits.load(), host=host_name())
        claims.settle_stale()
        claims.claim_waiting()
        claims.claim_runs()
        claims.claim_applies()
    started: list[Order] = []
    failed: list[Order] = []
    for claim in claims.claimed:
        order = order_for(claim)
        (started if start(claim, order, fresh=claim in claims.fresh, spawn=spawn) else failed).append(order)
    return TickReport(tuple(started), tuple(failed), tuple(claims.settled))


def order_for(claim: Claim) -> Order:
    if claim.kind == "run":
        return Order("run", claim.row_id, claim.attempt)
    rolls_back = claim.status == ApplyStatus.ROLLING_BACK
    return Order("rollback" if rolls_back else "apply", claim.row_id, claim.attempt)


def start(claim: Claim, order: Order, *, fresh: bool, spawn: Callable[[Order], None]) -> bool:
    """Start the wrapper of a claim. One that can't be started fails a ``fresh`` row; a resume spends a try."""
    try:
        _check_workspace(claim)
        spawn(order)
    except SpawnFailed as error:
        logger.warning("%s %s: %s", order.verb, order.row_id, error)
        _record_failure(claim, str(error), fresh=fresh)
        return False
    return True


def _check_workspace(claim: Claim) -> None:
    model = EvolutionRun if claim.kind == "run" else EvolutionApply
    path = model._default_manager.values_list("workspace__path", flat=True).get(pk=claim.row_id)
    if not os.path.isdir(WorkspacePaths(Path(path)).halo):  # noqa: PTH112 - Path.is_dir raises where we may not look
        raise SpawnFailed("workspace_missing")


def _record_failure(claim: Claim, reason: str, *, fresh: bool) -> None:
    now = database_now()
    try:
        if not fresh:
            transitions.leave_reason(claim, reason=reason)
        elif claim.kind == "run":
            transitions.fail_run(claim, reason=reason, now=now)
        else:
            transitions.fail_apply(claim, reason=reason, now=now)
    except ClaimLost:
        logger.info("%s was cancelled before its wrapper started", claim.row_id)


def _in_flight() -> bool:
    runs = EvolutionRun.objects.filter(status__in=[RunStatus.PENDING, RunStatus.RUNNING])
    return runs.exists() or EvolutionApply.objects.filter(status__in=sorted(APPLY_IN_FLIGHT)).exists()


def request_tick() -> None:
    """Tick once the current transaction has committed, without making the caller wait."""
    if settings.EVOLUTION_TICK_ON_COMMIT:
        transaction.on_commit(lambda: threading.Thread(target=_tick_aside, name="tick").start())


def _tick_aside() -> None:
    try:
        tick()
    finally:
        close_old_connections()
        connection.close()
