"""The wrapper's deadline: it stops before the others may take over, whatever clock or database does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from evolution import transitions
from evolution.claim import Claim, Observed
from evolution.errors import ClaimLost
from evolution.heartbeat import Heartbeat
from tests.evolution.rows import START, Rows, fresh

pytestmark = pytest.mark.django_db(transaction=True)

TIMEOUT = timedelta(minutes=5)


@dataclass
class Beating:
    """A heartbeat that looks all the time, on a clock that only moves when it is told to."""

    claim: Claim
    seconds: float = 0.0
    lost: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def start(self, leave_sec: float = 60.0) -> Heartbeat:
        heart = Heartbeat(
            claim=self.claim,
            timeout=TIMEOUT,
            on_lost=self.lost.set,
            look_sec=0.01,
            leave_sec=leave_sec,
            elapsed=lambda: self.seconds,
            end_process=self.ended.set,
        )
        heart.start(since=0.0)
        return heart


@pytest.fixture
def beating(rows: Rows, transactional_db: None) -> Iterator[Beating]:
    _, claim = rows.claimed()
    yield Beating(claim)
    connection.close()


def until(what: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(2000):
        if what():
            return
        waited.wait(0.01)
    raise AssertionError("it did not happen within 20 s")


def test_it_beats_when_a_minute_has_passed(beating: Beating) -> None:
    heart = beating.start()
    beating.seconds = 61
    until(lambda: bool(beating.claim.rows().filter(heartbeat_at__gt=START).exists()))
    heart.check()
    heart.stop()


def test_a_row_that_was_taken_over_is_noticed(beating: Beating, rows: Rows) -> None:
    heart = beating.start()
    run = rows.workspace.runs.get()
    assert transitions.requeue(Observed.of(run), now=START)
    assert beating.lost.wait(20)
    with pytest.raises(ClaimLost):
        heart.check()
    heart.stop()
    assert not beating.ended.is_set()


def test_a_main_thread_that_does_not_leave_is_ended(beating: Beating, rows: Rows) -> None:
    heart = beating.start(leave_sec=0.01)
    transitions.cancel_run(run_id=beating.claim.row_id, user=rows.user, now=START)
    assert beating.ended.wait(20)
    heart.stop()


def test_a_machine_that_slept_too_long_stops(beating: Beating) -> None:
    """The clock counts suspension: after it, nothing may be written even before the next look."""
    heart = beating.start()
    beating.seconds = (TIMEOUT - timedelta(seconds=59)).total_seconds()
    with pytest.raises(ClaimLost):
        heart.check()
    assert beating.lost.wait(20)
    heart.stop()
    assert fresh(beating.claim.rows().get()).heartbeat_at == START, "a late beat must not revive the claim"


def test_a_database_that_is_gone_counts_as_silence(beating: Beating, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def unreachable(*_args: object, **_values: object) -> bool:
        tried.set()
        raise OperationalError("connection refused")

    monkeypatch.setattr(transitions, "is_held", unreachable)
    monkeypatch.setattr(transitions, "beat", unreachable)
    heart = beating.start()
    assert tried.wait(20)
    heart.check()
    beating.seconds = 100
    heart.check()
    assert not beating.lost.is_set()
    beating.seconds = (TIMEOUT - timedelta(seconds=59)).total_seconds()
    assert beating.lost.wait(20)
    heart.stop()


def test_confirming_asks_the_row_every_five_seconds(beating: Beating, rows: Rows) -> None:
    heart = Heartbeat(
        claim=beating.claim,
        timeout=TIMEOUT,
        on_lost=lambda: None,
        look_sec=3600,
        elapsed=lambda: beating.seconds,
    )
    heart.start(since=0.0)
    transitions.cancel_run(run_id=beating.claim.row_id, user=rows.user, now=START)
    beating.seconds = 5
    heart.confirm()
    beating.seconds = 5.1
    with pytest.raises(ClaimLost):
        heart.confirm()
    heart.stop()
