"""Each page says once where it is, in the words of the menu, and writes moments as all others do."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from core import clock
from core.db import api_tokens
from core.db.models import record_event
from core.db.templatetags.moments import age, ago, exact
from core.texts import moment_words
from evolution.admin.log import note
from evolution.models import EvolutionRun
from sessions_app.models import Session
from tests.evolution.rows import Rows
from tests.site.chat_world import make_session
from tests.site.people import browser, person

pytestmark = pytest.mark.django_db

MOMENT = datetime(2026, 1, 31, 9, 30, 5, 123000, tzinfo=UTC)
DJANGOS = re.compile(
    r"\b(Jan|Feb|March|April|May|June|July|Aug|Sept|Oct|Nov|Dec)\.? \d{1,2}, \d{4}|[ap]\.m\."
)


def html_of(path: str) -> str:
    answer = browser("administrator").get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def places(path: str) -> list[str]:
    """The trail at the head of a page; places that are links with their address."""
    [head] = re.findall(r'<h1 class="halo-trail">(.*?)</h1>', html_of(path), re.DOTALL)
    found = re.findall(r'(?:<a href="([^"]*)">)?<bdi>(.*?)</bdi>', head, re.DOTALL)
    return [unescape(f"{name} -> {address}" if address else name) for address, name in found]


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows.make(tmp_path, name="shop")


@pytest.fixture
def session(tmp_path: Path, halo_home: Path) -> Session:
    made = make_session(tmp_path / "workspace")
    Session.objects.filter(pk=made.pk).update(title="Shipping to Norway", authoring_until=MOMENT)
    return made


SESSIONS = "/admin/sessions_app/session/"
RUNS = "/admin/evolution/evolutionrun/"
APPLIES = "/admin/evolution/evolutionapply/"


def test_lists_are_called_as_in_the_menu(rows: Rows) -> None:
    for path, name in {
        "/admin/": "Dashboard",
        SESSIONS: "Sessions",
        RUNS: "Runs",
        APPLIES: "Applies",
        "/admin/evolution/regressionscenario/": "Kept scenarios",
        "/admin/workspaces/workspace/": "Workspaces",
        "/admin/core/event/": "Events",
        "/admin/core/apitoken/": "Tokens",
        "/admin/settings/": "Settings",
        "/admin/auth/user/": "People",
        "/admin/auth/group/": "Groups",
    }.items():
        assert places(path) == [name]
        assert re.search(rf"<title>\s*{name} \| Halo</title>", html_of(path)), path


def test_a_row_stands_in_its_list_and_what_is_done_to_it_in_the_row(session: Session) -> None:
    list_, own = f"Sessions -> {SESSIONS}", f"{SESSIONS}{session.pk}/change/"

    assert places(own) == [list_, "Shipping to Norway"]
    for page, name in {"chat": "Chat", "archive": "Archive", "history": "Decisions so far"}.items():
        assert places(f"{SESSIONS}{session.pk}/{page}/") == [list_, f"Shipping to Norway -> {own}", name]
    assert places(f"{SESSIONS}new/") == [list_, "New session"]
    assert places(f"/admin/workspaces/workspace/{session.workspace_id}/change/") == [
        "Workspaces -> /admin/workspaces/workspace/",
        session.workspace.name,
    ]


def test_pages_of_runs_and_applies(rows: Rows) -> None:
    run = rows.in_review()
    apply = rows.applied(rows.approved([run]))
    own, list_ = f"{RUNS}{run.pk}/change/", f"Runs -> {RUNS}"

    assert places(own) == [list_, str(run)]
    assert places(f"{RUNS}{run.pk}/history/") == [list_, f"{run} -> {own}", "Decisions so far"]
    applied = f"{APPLIES}{apply.pk}/change/"
    assert places(applied) == [f"Applies -> {APPLIES}", str(apply)]
    other = rows.in_review()
    other_page = f"{RUNS}{other.pk}/change/"
    assert places(f"{RUNS}{other.pk}/delete/") == [list_, f"{other} -> {other_page}", "Delete"]


def test_people_and_their_forms() -> None:
    who = person("reviewer")
    own, list_ = f"/admin/auth/user/{who.pk}/change/", "People -> /admin/auth/user/"

    assert places(own) == [list_, who.get_username()]
    assert places("/admin/auth/user/add/") == [list_, "Add user"]
    assert places(f"/admin/auth/user/{who.pk}/password/")[:2] == [list_, f"{who.get_username()} -> {own}"]
    assert places(f"/admin/auth/group/{Group.objects.get(name='Reviewers').pk}/change/")[1:] == ["Reviewers"]
    assert places("/admin/password_change/") == ["Password change"]


def test_moments_are_written_one_way() -> None:
    assert moment_words(MOMENT) == "2026-01-31 09:30:05 UTC"
    assert exact(MOMENT) == '<time datetime="2026-01-31T09:30:05.123Z">2026-01-31 09:30:05 UTC</time>'
    titled = 'datetime="2026-01-31T09:30:05.123Z" title="2026-01-31 09:30:05 UTC"'
    later = MOMENT + timedelta(minutes=12)
    assert age(MOMENT, later) == f"<time {titled}>12 min</time>"
    assert ago(MOMENT, later) == f"<time {titled}>12 min ago</time>"
    assert (age(None), ago(None), exact(None)) == ("", "", "")


def test_every_list_says_how_long_ago_and_when_exactly(session: Session, rows: Rows) -> None:
    rows.in_review()
    api_tokens.issue(user=person("operator"), name="t", scopes=["view"], days=30, now=clock.now())
    record_event(kind="settings:changed", object_id="x", workspace_id=None, payload={}, now=MOMENT)
    exactly = re.compile(
        r'<time datetime="[^"]+Z" title="\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC">\d+ \w+( ago)?</time>'
    )

    for path in (
        SESSIONS,
        RUNS,
        "/admin/workspaces/workspace/",
        "/admin/core/event/",
        "/admin/core/apitoken/",
    ):
        html = html_of(path)
        assert exactly.search(html), path
        assert not DJANGOS.search(html), path


def test_a_session_is_told_in_words_before_what_was_said(session: Session) -> None:
    html = html_of(f"{SESSIONS}{session.pk}/change/")
    told = " ".join(re.sub(r"<[^>]+>", " ", html.partition('id="about"')[2].partition("</dl>")[0]).split())

    assert told.startswith(
        f">About it Id {session.pk} Workspace workspace Agent Helper ( helper ) Access full"
    )
    assert "So far 0 exchanges, 0 tokens in context, 0 written" in told
    assert html.index("Open the chat") < html.index('id="about"') < html.index("What was said")


def test_pages_of_one_row_say_when_exactly(session: Session, rows: Rows) -> None:
    run = rows.in_review()
    note(user=person("operator"), model=EvolutionRun, row_id=run.pk, text="Looked at")

    for path in (
        f"{SESSIONS}{session.pk}/change/",
        f"/admin/workspaces/workspace/{session.workspace_id}/change/",
        f"{RUNS}{run.pk}/history/",
    ):
        html = html_of(path)
        assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", html), path
        assert not DJANGOS.search(html), path


def test_the_log_of_decisions_says_who_and_what_or_that_there_is_none(rows: Rows) -> None:
    run = rows.in_review()
    path = f"{RUNS}{run.pk}/history/"
    assert "Nobody has decided anything here yet." in html_of(path)

    note(user=person("operator"), model=EvolutionRun, row_id=run.pk, text="Rejected: <b>too long</b>")
    html = html_of(path)

    assert "Rejected: &lt;b&gt;too long&lt;/b&gt;" in html
    assert "<bdi>a-operator</bdi>" in html
