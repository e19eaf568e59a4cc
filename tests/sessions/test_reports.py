"""Reports of sub-sessions as rows: once, when quiet, cut, with who still runs; stops and archives cascade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core import clock
from sessions_app import queue, sub_sessions
from sessions_app.archive_session import archive_session
from sessions_app.errors import SessionRefused
from sessions_app.models import QueuedMessage, Session
from sessions_app.stop_tree import mark_stopped
from tests.sessions.conftest import NOW
from tests.sessions.trees import NO_HOME, end_turn, start, told

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def an_agent(agent: Path) -> None:
    """The agent ``helper`` is there."""


def due(*sessions: Session) -> list[bool]:
    rows = {row.pk: row for row in Session.objects.all()}
    return [rows[session.pk].report_due for session in sessions]


def test_a_quiet_sub_session_reports_once(session: Session) -> None:
    child = start(session)
    assert due(child) == [True]
    assert end_turn(child, "The answer.") == (session.pk,)
    assert due(child) == [False]
    assert end_turn(child, "Again?") == ()
    (text,) = told(session)
    assert f"Report of sub-session {child.pk} (helper), status completed." in text
    assert "The answer." in text
    assert "None of your other sub-sessions is running." in text


def test_the_report_is_a_message_of_the_session_that_made_it(session: Session) -> None:
    child = start(session)
    end_turn(child)
    row = queue.waiting(session.pk)[0]
    assert (row.sender, row.source_session, row.starts_turn) == ("system", child.pk, True)


def test_a_long_report_is_cut_and_says_how_to_read_on(session: Session) -> None:
    child = start(session)
    end_turn(child, "x" * 39 + "YZ" + "x" * 100)
    (text,) = told(session)
    assert "x" * 39 + "Y\n" in text
    assert "Z" not in text
    assert (
        f'[101 more characters; to read on: get_session_output(session_id="{child.pk}", offset=40)]' in text
    )


def test_a_final_text_that_is_empty_leaves_the_last_output(session: Session) -> None:
    child = start(session)
    Session.objects.filter(pk=child.pk).update(output="From before.")
    end_turn(child, "")
    assert "From before." in told(session)[0]


def test_siblings_that_still_run_are_named(session: Session) -> None:
    first, second, third = (start(session) for _ in range(3))
    end_turn(first)
    assert f"Still running: {second.pk} (helper), {third.pk} (helper)." in told(session)[-1]
    end_turn(third)
    assert f"Still running: {second.pk} (helper)." in told(session)[-1]
    end_turn(second)
    assert "None of your other sub-sessions is running." in told(session)[-1]


def test_many_siblings_are_counted(session: Session) -> None:
    children = [start(session) for _ in range(14)]
    end_turn(children[0])
    assert told(session)[0].endswith("(helper), and 3 more.")


def test_a_parent_below_the_root_waits_for_its_subtree(session: Session) -> None:
    child = start(session)
    first, second = start(child), start(child)
    assert end_turn(child, "I wait.") == ()
    assert end_turn(first) == (child.pk,)
    assert end_turn(child, "One is there.") == ()
    assert end_turn(second) == (child.pk,)
    assert told(session) == []
    assert end_turn(child, "All is there.") == (session.pk,)
    assert ["All is there." in text for text in told(session)] == [True]


def test_a_turn_that_failed_reports_what_went_wrong(session: Session) -> None:
    child = start(session)
    Session.objects.filter(pk=child.pk).update(output="Old news.")
    end_turn(child, "", status="failed", error="The model call failed: no key.")
    (text,) = told(session)
    assert "status aborted: The model call failed: no key." in text
    assert "Old news" not in text


def test_a_soft_interruption_is_no_end(session: Session) -> None:
    child = start(session)
    assert end_turn(child, "", status="interrupted") == ()
    assert (due(child), told(session)) == ([True], [])


def test_an_answer_that_another_turn_follows_is_told_and_the_debt_stays(session: Session) -> None:
    child = start(session)
    end_turn(child, "First answer.", arrived=["And another thing"])
    assert due(child) == [True]
    assert "status still running." in told(session)[0] and "First answer." in told(session)[0]
    end_turn(child, "Second answer.")
    assert due(child) == [False]
    assert ["completed" in text for text in told(session)] == [False, True]


def test_an_abort_that_another_turn_follows_is_no_news(session: Session) -> None:
    child = start(session)
    assert end_turn(child, "", status="aborted", arrived=["go on"]) == ()
    assert told(session) == []


def test_reports_are_never_refused_for_a_full_queue(session: Session) -> None:
    QueuedMessage.objects.bulk_create(
        QueuedMessage(session=session, sender="agent", text="x", stamp=str(number), created_at=NOW)
        for number in range(300)
    )
    with pytest.raises(SessionRefused, match="300 messages already wait"):
        queue.accept(session=session, text="one more", sender="agent", now=clock.now())
    end_turn(start(session))
    assert len(told(session)) == 1


def test_a_question_makes_a_new_debt(session: Session) -> None:
    child = start(session)
    end_turn(child, "one")
    queue.accept(session=child, text="and?", sender="agent", source_session=session.pk, now=clock.now())
    end_turn(child, "two")
    assert [text.count("completed") for text in told(session)] == [1, 1]


def stop(session: Session, by: Session | None = None) -> Sequence[str]:
    return mark_stopped(session.pk, by=by.pk if by else "", now=clock.now())


def test_a_parent_that_stops_a_child_hears_nothing_of_it(session: Session) -> None:
    child = start(session)
    grandchild = start(child)
    assert stop(child, by=session) == ()
    assert due(child, grandchild) == [False, False]
    assert told(session) == [] and told(child, grandchild) == []
    rows = Session.objects.exclude(stopped_at=None).values_list("pk", flat=True)
    assert set(rows) == {child.pk, grandchild.pk}


def test_when_somebody_else_stops_a_sub_session_its_parent_is_told_once(session: Session) -> None:
    child = start(session)
    grandchild = start(child)
    end_turn(child, "I wait.")
    assert stop(grandchild, by=session) == (child.pk,)
    assert stop(grandchild) == ()
    (text,) = told(child, grandchild)
    assert "status aborted: it was stopped." in text
    assert end_turn(child, "Then without it.") == (session.pk,)


def test_after_a_stop_nothing_starts_by_itself_and_nothing_is_dropped(session: Session) -> None:
    child = start(session, "the task")
    queue.accept(session=session, text="for the root", now=clock.now())
    stop(session)
    assert not queue.wants_turn(session.pk) and not queue.wants_turn(child.pk)
    assert [row.text for row in queue.waiting(child.pk)] == ["the task"]
    assert [row.text for row in queue.waiting(session.pk)] == ["for the root"]


def test_a_report_that_was_on_its_way_does_not_wake_a_stopped_root(session: Session) -> None:
    child = start(session)
    stop(session)
    Session.objects.filter(pk=child.pk).update(report_due=True)  # its turn was ending at that moment
    assert end_turn(child) == ()
    assert not queue.wants_turn(session.pk)
    assert len(told(session)) == 1, "kept for the next turn"


def test_a_message_revives_a_stopped_sub_session(session: Session) -> None:
    child = start(session)
    stop(child, by=session)
    queue.accept(session=child, text="go on", sender="agent", source_session=session.pk, now=clock.now())
    child.refresh_from_db()
    assert (child.stopped_at, child.report_due) == (None, True)
    assert end_turn(child) == (session.pk,)


def test_a_stopped_session_starts_nothing(session: Session) -> None:
    child = start(session)
    stop(session)
    with pytest.raises(SessionRefused, match="stopped"):
        start(child)
    assert Session.objects.count() == 2


def test_archiving_takes_all_below_along_and_clears_the_queues(session: Session) -> None:
    child = start(session)
    grandchild = start(child)
    count, to_wake = archive_session(child.pk, by=session.pk, now=clock.now())
    assert (count, list(to_wake)) == (2, [])
    assert set(Session.objects.filter(archived_at=None).values_list("pk", flat=True)) == {session.pk}
    assert not QueuedMessage.objects.filter(session__in=[child, grandchild], worked_at=None).exists()
    with pytest.raises(SessionRefused, match="archived"):
        queue.accept(session=grandchild, text="hello?", now=clock.now())
    grandchild.refresh_from_db()
    assert grandchild.report_due is False, "a refused message makes no debt"
    assert archive_session(child.pk, now=clock.now())[0] == 0


def test_when_a_person_archives_a_sub_session_its_parent_is_told(session: Session) -> None:
    child = start(session)
    assert list(archive_session(child.pk, now=clock.now())[1]) == [session.pk]
    assert "status aborted: it was archived." in told(session)[0]


def test_outside_data_goes_wherever_the_words_go(session: Session) -> None:
    child = start(session)
    Session.objects.filter(pk=child.pk).update(outside_data_at=NOW)
    grandchild = start(Session.objects.get(pk=child.pk))
    assert grandchild.outside_data_at == NOW
    session.refresh_from_db()
    assert session.outside_data_at is None
    end_turn(child, "what a stranger wrote", status="completed")
    session.refresh_from_db()
    assert session.outside_data_at is None, "its child still runs: nothing was told"
    end_turn(grandchild)
    end_turn(child, "what a stranger wrote")
    session.refresh_from_db()
    assert session.outside_data_at is not None


def test_a_session_asked_again_below_a_stopped_one_reports_to_the_next_above(session: Session) -> None:
    child = start(session)
    below = start(child)
    end_turn(session)
    mark_stopped(child.pk, by=session.pk, now=clock.now())
    sub_sessions.query(
        caller_id=session.pk, session_id=below.pk, message="and yet?", home=NO_HOME, now=clock.now()
    )
    assert end_turn(below, "found it") == (session.pk,)
    (text,) = told(session, below)
    assert "found it" in text
    assert text.endswith("None of your other sub-sessions is running.")
    assert not told(child, below)


def test_who_stops_a_session_below_a_stopped_one_hears_nothing_of_it(session: Session) -> None:
    child = start(session)
    below = start(child)
    mark_stopped(child.pk, by=session.pk, now=clock.now())
    queue.accept(session=below, text="go on", now=clock.now())
    assert mark_stopped(below.pk, by=session.pk, now=clock.now()) == ()
    assert not told(session)
    queue.accept(session=below, text="go on", now=clock.now())
    assert mark_stopped(below.pk, now=clock.now()) == (session.pk,)
    assert "it was stopped" in told(session, below)[0]
