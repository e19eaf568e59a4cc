"""What a restart makes of a tree: who was cut off, who only waited, who had answered already."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import clock
from core.paths import HaloHome
from sessions_app import lease, ledger, queue, restart
from sessions_app.logs import records as make
from sessions_app.models import QueuedMessage, RunningSession, Session
from sessions_app.open_session import open_session
from sessions_app.opened_session import OpenSession
from sessions_app.take_batch import take_batch
from tests.sessions.conftest import NOW
from tests.sessions.trees import end_turn, start, told

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def an_agent(agent: Path) -> None:
    """The agent ``helper`` is there."""


def at_work(session: Session, held: lease.Lease, home: HaloHome) -> OpenSession:
    """In the middle of its turn, as a server leaves it that dies."""
    opened = open_session(session.pk, home=home, held=held)
    ledger.enter(session.pk, held=held, now=NOW)
    assert take_batch(opened)
    return opened


def answered(opened: OpenSession, text: str) -> None:
    reply = {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}
    opened.log.append(raw=[make.message(reply, [])])


def succeed(session: Session, home: HaloHome) -> list[str]:
    """The next holder; returns what the root was told by the system."""
    held = lease.acquire(session.pk)
    try:
        restart.settle(held, home=home, now=clock.now())
    finally:
        lease.release(held)
    rows = QueuedMessage.objects.filter(session=session, client_id__startswith="restart-")
    return [row.text for row in rows]


def test_those_that_were_cut_off_and_those_that_waited_for_them_are_stopped(
    session: Session, tmp_path: Path
) -> None:
    home = HaloHome(tmp_path / "home")
    lead, other = start(session), start(session)
    writer = start(lead)
    end_turn(lead, "I wait for the writer.")
    end_turn(other, "Done before.")
    QueuedMessage.objects.filter(session=session).update(worked_at=NOW)
    held = lease.acquire(session.pk)
    at_work(writer, held, home)
    lease.release(held)

    (nudge,) = succeed(session, home)
    assert "You were idle" in nudge and writer.pk in nudge and lead.pk in nudge and other.pk not in nudge
    stopped = Session.objects.exclude(stopped_at=None).values_list("pk", flat=True)
    assert set(stopped) == {lead.pk, writer.pk}
    assert not Session.objects.filter(report_due=True).exists(), "nobody waits for a report that never comes"
    assert list(queue.waiting_in_tree(session.pk)) == [session.pk], "only the root starts by itself"
    assert not RunningSession.objects.exists()
    assert succeed(session, home) == [nudge], "told once"


def test_one_that_had_answered_reports_and_is_not_cut_off(session: Session, tmp_path: Path) -> None:
    home = HaloHome(tmp_path / "home")
    child, cut = start(session), start(session)
    held = lease.acquire(session.pk)
    answered(at_work(child, held, home), "The answer.")
    at_work(cut, held, home)
    lease.release(held)

    (nudge,) = succeed(session, home)
    assert cut.pk in nudge and child.pk not in nudge
    held = lease.acquire(session.pk)
    opened = open_session(child.pk, home=home, held=held)
    lease.release(held)
    assert opened.to_wake == [session.pk]
    (report,) = told(session, child)
    assert "status completed." in report and "The answer." in report
    child.refresh_from_db()
    assert (child.report_due, child.output, child.exchange_count) == (False, "The answer.", 1)
    assert "cut off" not in report
