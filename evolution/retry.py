"""A run starts over: with a new hint, or with the old one when it wasn't the draft's fault."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from evolution import permissions, ticker, transitions
from evolution.errors import Refused
from evolution.models import EvolutionRun
from evolution.states import APPLY_UNSUCCESSFUL, RUN_MOVES, RunStatus
from evolution.unarchive import unarchived
from evolution.words import check_length

_RETRYABLE = frozenset(
    source for source, target in RUN_MOVES if target == RunStatus.PENDING and source != RunStatus.RUNNING
)


def retry(*, run_id: str, attempt: int, hint: str | None, user: User, now: datetime) -> None:
    """``hint`` None keeps the old one; ``attempt`` is the one that was shown.

    Raises Refused ``forbidden``, ``not_found``, ``not_retryable`` (details: ``status``), ``already_pending``,
    ``hint_too_long``, ``changed``, or as ``unarchived``. Call it outside of a transaction.
    """
    permissions.require(user, "review")
    check_length(hint or "", "hint")
    run = EvolutionRun.objects.select_related("workspace", "current_apply").filter(pk=run_id).first()
    if run is None:
        raise Refused("not_found", f"There is no run-{run_id}; it may have been deleted.")
    check_retryable(run)
    source = RunStatus(run.status)
    with unarchived(run):
        transitions.retry(
            run_id=run.pk,
            source=source,
            attempt=attempt,
            hint=hint,
            user=user,
            now=now,
            archived=run.archived_at is not None,
        )
    ticker.request_tick()


def check_retryable(run: EvolutionRun) -> None:
    """Raises Refused ``not_retryable``."""
    if not _may_start_over(run):
        raise Refused("not_retryable", f"{run} is {run.status}; {_what_then(run)}", status=run.status)


def _may_start_over(run: EvolutionRun) -> bool:
    if run.status not in _RETRYABLE:
        return False
    apply = run.current_apply
    return run.status != RunStatus.APPROVED or (apply is not None and apply.status in APPLY_UNSUCCESSFUL)


def _what_then(run: EvolutionRun) -> str:
    if run.status == RunStatus.APPLIED:
        return "roll it back first."
    if run.status == RunStatus.APPROVED:
        return f"its {run.current_apply} is at work; cancel that first."
    return "it is being worked already; cancel it first."
