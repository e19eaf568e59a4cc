from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.db.clock import database_now
from sessions_app import queue, stamps
from sessions_app.errors import QueueFull, SessionRefused
from sessions_app.models import QueuedMessage, Session
from tests.sessions.conftest import NOW


def test_a_message_is_stored_once_whatever_is_sent_again(session: Session) -> None:
    first = queue.accept(session=session, text="hello", client_id="c1", now=NOW)
    again = queue.accept(session=session, text="hello, changed", client_id="c1", now=NOW)
    assert (first.created, again.created) == (True, False)
    assert (again.message_id, again.stamp) == (first.message_id, first.stamp)
    assert [row.text for row in queue.waiting(session.pk)] == ["hello"]

    queue.mark_worked([first.message_id], now=NOW)
    later = queue.accept(session=session, text="hello", client_id="c1", now=NOW)
    assert not later.created
    assert queue.waiting(session.pk) == []


def test_stamps_are_unique_in_a_session(session: Session) -> None:
    accepted = [queue.accept(session=session, text=f"m{n}", now=NOW).stamp for n in range(4)]
    assert accepted == [f"2026-01-31T09:30:00.00{n}Z" for n in range(4)]


def test_agents_wait_in_a_bounded_queue_and_people_never(session: Session) -> None:
    for n in range(3):
        queue.accept(session=session, text=f"{n}", sender="agent", max_waiting=3, now=NOW)
    with pytest.raises(QueueFull, match="3 messages"):
        queue.accept(session=session, text="x", sender="agent", max_waiting=3, now=NOW)
    assert QueuedMessage.objects.count() == 3
    assert queue.accept(session=session, text="x", max_waiting=3, now=NOW).created


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_message_is_refused(session: Session, text: str) -> None:
    with pytest.raises(SessionRefused, match="empty"):
        queue.accept(session=session, text=text, now=NOW)
    assert not QueuedMessage.objects.exists()


def test_an_archived_session_takes_no_message(session: Session) -> None:
    Session.objects.update(archived_at=database_now())
    with pytest.raises(SessionRefused, match="archived"):
        queue.accept(session=session, text="x", now=NOW)
    assert not QueuedMessage.objects.exists()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(st.tuples(st.sampled_from("abcd"), st.text(min_size=1, max_size=5)), max_size=12))
def test_each_client_id_is_one_message_in_the_order_of_arrival(
    session: Session, sent: list[tuple[str, str]]
) -> None:
    QueuedMessage.objects.all().delete()
    expected: dict[str, str] = {}
    for client_id, text in sent:
        queue.accept(session=session, text=f"x{text}", client_id=client_id, now=NOW)
        expected.setdefault(client_id, f"x{text}")
    assert [row.client_id for row in queue.waiting(session.pk)] == list(expected)


def test_hundreds_in_one_millisecond_cost_the_same_each(session: Session) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            queue.accept(session=session, text="one more", now=NOW)
        return len(asked)

    first = queries()
    QueuedMessage.objects.bulk_create(
        QueuedMessage(
            session=session, sender="person", text="m", stamp=stamps.after(NOW, step), created_at=NOW
        )
        for step in range(1, 400)
    )
    assert queries() == first
    assert QueuedMessage.objects.latest("id").stamp == "2026-01-31T09:30:00.400Z"


def test_a_free_millisecond_between_taken_ones_is_used(session: Session) -> None:
    for step in (0, 1, 3):
        queue.accept(session=session, text="m", now=NOW + timedelta(milliseconds=step))
    assert queue.accept(session=session, text="m", now=NOW).stamp == "2026-01-31T09:30:00.002Z"
    assert queue.accept(session=session, text="m", now=NOW).stamp == "2026-01-31T09:30:00.004Z"
