from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from core import clock
from core.db.clock import database_now
from core.processes import ProcessIdentity
from sessions_app import lease
from sessions_app.errors import SessionHeld
from sessions_app.logs import LeaseLostError
from sessions_app.models import Session


def held_by(session: Session, owner: ProcessIdentity, *, expires_in: float) -> None:
    Session.objects.filter(pk=session.pk).update(
        lease_host=owner.host,
        lease_boot_id=owner.boot_id,
        lease_pid=owner.pid,
        lease_start_time=owner.start_time,
        lease_epoch=7,
        lease_expires_at=database_now() + timedelta(seconds=expires_in),
    )


def elsewhere() -> ProcessIdentity:
    return ProcessIdentity("other-host", "boot", 4711, 1)


def test_a_free_session_is_taken_with_a_higher_epoch_each_time(session: Session) -> None:
    first = lease.acquire(session.pk)
    lease.release(first)
    second = lease.acquire(session.pk)
    assert second.epoch == first.epoch + 1
    with pytest.raises(LeaseLostError):
        first.check()
    second.check()


def test_a_live_owner_is_not_succeeded(session: Session) -> None:
    held_by(session, elsewhere(), expires_in=30)
    with pytest.raises(SessionHeld, match="4711 on other-host"):
        lease.acquire(session.pk)
    assert Session.objects.get().lease_epoch == 7
    assert lease.live_holder(session.pk) == elsewhere()


def test_an_expired_lease_of_another_host_is_succeeded(session: Session) -> None:
    held_by(session, elsewhere(), expires_in=-1)
    assert lease.acquire(session.pk).epoch == 8


def test_a_dead_owner_on_this_host_is_succeeded_at_once(session: Session) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = ProcessIdentity.of(child.pid)
        assert owner is not None
        held_by(session, owner, expires_in=60)
        with pytest.raises(SessionHeld):
            lease.acquire(session.pk)
        child.kill()
    assert lease.acquire(session.pk).epoch == 8


def test_a_lease_that_was_succeeded_can_not_be_renewed(session: Session) -> None:
    mine = lease.acquire(session.pk)
    assert lease.renew(mine)
    held_by(session, elsewhere(), expires_in=30)
    assert not lease.renew(mine)
    with pytest.raises(LeaseLostError):
        mine.check()
    lease.release(mine)
    assert lease.live_holder(session.pk) == elsewhere(), (
        "releasing what was lost takes nothing from the successor"
    )


def test_a_lease_not_renewed_in_time_stops_its_writer(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = lease.acquire(session.pk)
    later = clock.suspended_seconds() + lease.LENGTH_SEC
    monkeypatch.setattr(clock, "suspended_seconds", lambda: later)
    with pytest.raises(LeaseLostError, match="ran out"):
        mine.check()
