"""The workspace's lock as a wrapper takes it: for its claim, against wrappers that lost theirs."""

from __future__ import annotations

from contextlib import AbstractContextManager

from core.processes import ProcessIdentity
from evolution.claim import apply_claim
from evolution.job import Job
from evolution.states import ApplyStatus
from workspaces.publish_lock import LockOwner, exclusive

_STATUSES = {
    "apply": (ApplyStatus.RUNNING, ApplyStatus.SYNCING),
    "rollback": (ApplyStatus.ROLLING_BACK,),
}


def publishing(job: Job) -> AbstractContextManager[None]:
    """Hold the workspace to the end of this attempt. Raises LockHeld."""
    owner = LockOwner(
        kind="rollback" if job.order.verb == "rollback" else "apply",
        row_id=job.order.row_id,
        attempt=job.order.attempt,
        process=ProcessIdentity.current(),
    )
    return exclusive(job.paths, owner=owner, may_end_holder=has_lost_its_claim)


def has_lost_its_claim(owner: LockOwner) -> bool:
    """Whether the row belongs to somebody else by now, so that its old wrapper may be ended."""
    return not any(
        apply_claim(owner.row_id, owner.attempt, status).rows().exists() for status in _STATUSES[owner.kind]
    )
