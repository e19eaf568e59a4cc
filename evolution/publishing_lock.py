"""The workspace's lock as a wrapper takes it: for its claim, against wrappers that lost theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.processes import ProcessIdentity
from evolution.claim import has_lost_its_claim
from evolution.job import Job
from workspaces.publish_lock import LockOwner, exclusive


@contextmanager
def publishing(job: Job) -> Iterator[None]:
    """Hold the workspace to the end of this attempt. Raises LockHeld, ClaimLost.

    The claim is confirmed once the lock is held: a wrapper that was replaced while it waited, or slept before
    it came here, writes nothing any more.
    """
    owner = LockOwner(
        kind="rollback" if job.order.verb == "rollback" else "apply",
        row_id=job.order.row_id,
        attempt=job.order.attempt,
        process=ProcessIdentity.current(),
    )
    job.step("lock")
    with exclusive(job.paths, owner=owner, may_end_holder=has_lost_its_claim):
        job.heart.confirm(afresh=True)
        yield
