"""The statuses of runs and applies, and the table of moves between them (invariant 1). No Django.

Only ``evolution.transitions`` writes a status; every pair it may write stands here.
"""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    AWAITING_REVIEW = "awaiting_review"
    APPROVED = "approved"
    APPLIED = "applied"
    ROLLED_BACK = "rolled_back"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class ApplyStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SYNCING = "syncing"
    APPLIED = "applied"
    ROLLING_BACK = "rolling_back"
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


_R = RunStatus
_A = ApplyStatus

RUN_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        (_R.PENDING, _R.RUNNING),  # claimed
        (_R.PENDING, _R.CANCELLED),
        (_R.RUNNING, _R.PENDING),  # stale, tries left
        (_R.RUNNING, _R.TIMEOUT),  # stale, tries spent
        (_R.RUNNING, _R.CANCELLED),
        (_R.RUNNING, _R.SKIPPED),
        (_R.RUNNING, _R.FAILED),
        (_R.RUNNING, _R.AWAITING_REVIEW),
        (_R.RUNNING, _R.APPROVED),  # its own gates passed
        (_R.AWAITING_REVIEW, _R.APPROVED),
        (_R.AWAITING_REVIEW, _R.REJECTED),
        (_R.APPROVED, _R.APPROVED),  # its apply failed: a new one
        (_R.APPROVED, _R.REJECTED),  # the same, given up
        (_R.APPROVED, _R.AWAITING_REVIEW),  # its auto apply failed, timed out or was cancelled
        (_R.APPROVED, _R.APPLIED),
        (_R.APPLIED, _R.ROLLED_BACK),
        *(
            (status, _R.PENDING)  # retry
            for status in (
                _R.AWAITING_REVIEW,
                _R.APPROVED,
                _R.REJECTED,
                _R.SKIPPED,
                _R.FAILED,
                _R.TIMEOUT,
                _R.CANCELLED,
                _R.ROLLED_BACK,
            )
        ),
    }
)

APPLY_MOVES: frozenset[tuple[str, str]] = frozenset(
    {
        (_A.PENDING, _A.RUNNING),  # claimed
        (_A.PENDING, _A.CANCELLED),
        (_A.RUNNING, _A.PENDING),  # stale, tries left
        (_A.RUNNING, _A.TIMEOUT),  # stale, tries spent
        (_A.RUNNING, _A.CANCELLED),
        (_A.RUNNING, _A.FAILED),
        (_A.RUNNING, _A.SYNCING),  # checkpoint
        (_A.SYNCING, _A.SYNCING),  # claimed again after a crash, or turned to restoring
        (_A.SYNCING, _A.FAILED),  # after the old surface was restored
        (_A.SYNCING, _A.APPLIED),
        (_A.APPLIED, _A.ROLLING_BACK),
        (_A.ROLLING_BACK, _A.ROLLING_BACK),  # claimed again after a crash
        (_A.ROLLING_BACK, _A.APPLIED),  # refused while planning
        (_A.ROLLING_BACK, _A.ROLLED_BACK),
    }
)

RUN_FINAL = frozenset(
    {_R.APPLIED, _R.ROLLED_BACK, _R.REJECTED, _R.SKIPPED, _R.FAILED, _R.TIMEOUT, _R.CANCELLED}
)
APPLY_FINAL = frozenset({_A.APPLIED, _A.ROLLED_BACK, _A.FAILED, _A.TIMEOUT, _A.CANCELLED})
APPLY_HOLDS_WORKSPACE = frozenset({_A.RUNNING, _A.SYNCING, _A.ROLLING_BACK})
APPLY_IN_FLIGHT = APPLY_HOLDS_WORKSPACE | {_A.PENDING}
APPLY_UNSUCCESSFUL = frozenset({_A.FAILED, _A.TIMEOUT, _A.CANCELLED})
