"""One process works a root session's tree at a time: a lease on the root's row, by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q

from core import clock
from core.db.clock import database_now
from core.processes import ProcessIdentity
from sessions_app.errors import SessionHeld, SessionRefused
from sessions_app.logs import LeaseLostError
from sessions_app.models import Session

LENGTH_SEC = 60.0
RENEW_SEC = 15.0


@dataclass(slots=True)
class Lease:
    """``deadline`` is on the clock that also runs while the machine sleeps (``clock.suspended_seconds``)."""

    root_id: str
    owner: ProcessIdentity
    epoch: int
    deadline: float

    def check(self) -> None:
        """The fence of every append: raises LeaseLostError once this lease may have been succeeded."""
        if clock.suspended_seconds() >= self.deadline:
            raise LeaseLostError(
                f"The lease on session {self.root_id} ran out before it could be renewed; another process may "
                "work it now."
            )


def acquire(root_id: str) -> Lease:
    """Take the lease, or raise SessionHeld (with its owner) or SessionRefused (no such session).

    The new epoch is higher than every earlier one. An owner that is dead on this host is succeeded at once,
    any other when its lease has expired.
    """
    started = clock.suspended_seconds()
    now = database_now()
    row = Session.objects.filter(pk=root_id).first()
    if row is None:
        raise SessionRefused(f"There is no session {root_id}.", "not_found")
    owner = row.lease_owner
    me = ProcessIdentity.current()
    free = owner is None or (owner.is_local and not owner.is_alive())
    rows = Session.objects.filter(pk=root_id, lease_epoch=row.lease_epoch)
    if not free:
        rows = rows.filter(Q(lease_expires_at__lte=now) | Q(lease_host=None))
    epoch = row.lease_epoch + 1
    taken = rows.update(
        lease_host=me.host,
        lease_boot_id=me.boot_id,
        lease_pid=me.pid,
        lease_start_time=me.start_time,
        lease_epoch=epoch,
        lease_expires_at=now + timedelta(seconds=LENGTH_SEC),
    )
    if not taken:
        raise SessionHeld(root_id, Session.objects.get(pk=root_id).lease_owner)
    return Lease(root_id=root_id, owner=me, epoch=epoch, deadline=started + LENGTH_SEC)


def renew(lease: Lease) -> bool:
    """Lengthen a lease that still stands; False when a successor has it, and then nothing may be written."""
    started = clock.suspended_seconds()
    until = database_now() + timedelta(seconds=LENGTH_SEC)
    held = Session.objects.filter(pk=lease.root_id, lease_epoch=lease.epoch).exclude(lease_host=None)
    if not held.update(lease_expires_at=until):
        lease.deadline = 0.0
        return False
    lease.deadline = started + LENGTH_SEC
    return True


def lift(lease: Lease, *, above: int) -> None:
    """Raise the epoch of a lease we hold over ``above``: a log was written under a higher one, by a database
    that is gone. Raises LeaseLostError when a successor has the session.
    """
    epoch = above + 1
    held = Session.objects.filter(pk=lease.root_id, lease_epoch=lease.epoch).exclude(lease_host=None)
    if not held.update(lease_epoch=epoch):
        lease.deadline = 0.0
    lease.check()
    lease.epoch = epoch


def confirm(lease: Lease) -> None:
    """The fence of a transaction that ends a turn: raises LeaseLostError when a successor has the session.

    Inside a transaction the row stays as it is until that transaction has ended.
    """
    lease.check()
    held = Session.objects.filter(pk=lease.root_id, lease_epoch=lease.epoch).exclude(lease_host=None)
    if not held.update(lease_epoch=lease.epoch):
        lease.deadline = 0.0
        lease.check()


def release(lease: Lease) -> None:
    """Give the lease back so that the next process need not wait; the epoch stays."""
    lease.deadline = 0.0
    Session.objects.filter(pk=lease.root_id, lease_epoch=lease.epoch).update(
        lease_host=None, lease_boot_id=None, lease_pid=None, lease_start_time=None, lease_expires_at=None
    )


def live_holder(root_id: str) -> ProcessIdentity | None:
    """The live holder, as far as this host and the database's clock can tell."""
    row = Session.objects.filter(pk=root_id).first()
    owner = row.lease_owner if row else None
    if row is None or owner is None or (owner.is_local and not owner.is_alive()):
        return None
    if row.lease_expires_at is not None and row.lease_expires_at <= database_now():
        return None
    return owner
