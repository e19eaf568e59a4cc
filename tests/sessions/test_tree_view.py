"""Sub-sessions where people look: on the session's page, in lists, at the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.urls import reverse

from core import clock
from sessions_app.logs import SessionLog
from sessions_app.logs import records as make
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.stop_tree import mark_stopped
from sessions_app.tree_view import tree_of
from tests.sessions.trees import end_turn, start
from tests.site.people import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def child(session: Session, agent: Path) -> Session:
    Session.objects.filter(pk=session.pk).update(title="The whole task")
    child = start(session, "A part of it")
    Session.objects.filter(pk=child.pk).update(title="<b>A part</b>")
    log = SessionLog(log_folder(child), log_leaf(child))
    log.load()
    at = clock.stamp(clock.now())
    log.append(ui=[make.add(make.user_row(row_id="r1", at=at, stamp=at, text="said below"))])
    return child


def address(session: Session) -> str:
    return reverse("admin:sessions_app_session_change", args=[quote(session.pk)])


def test_a_tree_shows_parents_ahead_of_their_children(session: Session, child: Session) -> None:
    grandchild, sibling = start(child), start(session)
    end_turn(sibling)
    mark_stopped(grandchild.pk, by=child.pk, now=clock.now())
    shown = tree_of(Session.objects.get(pk=grandchild.pk))
    states = {branch.session.pk: (branch.depth, branch.state) for branch in shown.branches}
    assert states == {
        session.pk: (0, "running"),
        child.pk: (1, "running"),
        grandchild.pk: (2, "stopped"),
        sibling.pk: (1, "idle"),
    }
    order = [branch.session.pk for branch in shown.branches]
    assert order[0] == session.pk and order.index(grandchild.pk) == order.index(child.pk) + 1
    assert (shown.count, shown.left_out) == (4, 0)


def test_the_page_of_a_session_leads_to_those_it_started_and_back(session: Session, child: Session) -> None:
    client = browser("operator")
    page = client.get(address(session)).content.decode()
    assert "Sub-sessions" in page and f'href="{address(child)}"' in page
    assert "&lt;b&gt;A part&lt;/b&gt;" in page and "<b>A part</b>" not in page
    below = client.get(address(child)).content.decode()
    assert "said below" in below and f'href="{address(session)}"' in below


def test_a_session_alone_shows_no_tree(session: Session) -> None:
    assert "Sub-sessions</h2>" not in browser("operator").get(address(session)).content.decode()


def test_the_list_can_be_narrowed_to_either(session: Session, child: Session) -> None:
    client = browser("operator")
    listing = reverse("admin:sessions_app_session_changelist")

    def shown(place: str) -> set[str]:
        page = client.get(listing, {"place": place} if place else {}).content.decode()
        return {row.pk for row in (session, child) if address(row) in page}

    assert (shown(""), shown("root"), shown("below")) == ({session.pk, child.pk}, {session.pk}, {child.pk})


def test_the_terminal_lists_and_shows_them(
    session: Session, child: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("session", "list")
    assert "The whole task  [sub-sessions: 1]" in capsys.readouterr().out
    call_command("session", "show", session.pk[:6])
    shown = capsys.readouterr().out
    assert f"* {session.pk}  helper, running: The whole task" in shown
    assert f"    {child.pk}  helper, running: " in shown
    call_command("session", "show", child.pk)
    assert "said below" in capsys.readouterr().out
    call_command("session", "show", session.pk, json=True)
    (below,) = json.loads(capsys.readouterr().out)["sub_sessions"]
    assert below == {"id": child.pk, "agent": "helper", "state": "running"}


def test_the_beginning_of_an_id_means_the_root(
    session: Session, child: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("session", "show", f"{session.pk}>{child.pk[17:20]}")
    assert f"* {'  '}{child.pk}" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no session"):
        call_command("session", "show", f"{session.pk}>zzzz_")


def test_a_session_is_archived_at_the_terminal_with_all_below_it(
    session: Session, child: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("session", "archive", session.pk[:6])
    assert capsys.readouterr().out == "Archived 2 sessions.\n"
    assert not Session.objects.filter(archived_at=None).exists()
    call_command("session", "archive", session.pk)
    assert capsys.readouterr().out == f"Session {session.pk} had been archived before.\n"
    call_command("session", "list")
    assert "No sessions yet" in capsys.readouterr().out
    call_command("session", "show", child.pk)
    assert "said below" in capsys.readouterr().out, "its log stays"
