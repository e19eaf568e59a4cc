"""A run, an apply or a kept scenario that a note names is one click away; nothing else becomes a link."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.ids import new_row_id
from evolution.models import EvolutionRun
from sessions_app import commands
from sessions_app.commands import CommandContext, CommandResult
from sessions_app.live.items import row_html
from sessions_app.logs.records import add, assistant_row, encode, system_row, user_row
from sessions_app.models import Session
from sessions_app.named_pages import MAX_NAMED, linked, pages_named
from sessions_app.places import ui_log
from tests.evolution.rows import Rows
from tests.site.chat_world import make_session
from tests.site.people import browser

pytestmark = pytest.mark.django_db

RUNS = "/admin/evolution/evolutionrun/"
APPLIES = "/admin/evolution/evolutionapply/"
HOSTILE = "\"'><script>evil()</script><b onclick=evil()>"


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows.make(tmp_path, name="evolving")


@pytest.fixture
def session(tmp_path: Path, halo_home: Path) -> Session:
    return make_session(tmp_path / "workspace")


def links(html: str) -> list[tuple[str, str]]:
    return re.findall(r'<a class="named-page" href="([^"]*)">([^<]*)</a>', html)


def shown(text: str) -> str:
    return linked(text, pages_named([text]))


def test_what_is_there_becomes_a_link_to_its_page(rows: Rows) -> None:
    run = rows.in_review()
    apply = rows.approved([run])

    assert links(shown(f"Queued as {run}. {apply} merges it.")) == [
        (f"{RUNS}{run.pk}/change/", str(run)),
        (f"{APPLIES}{apply.pk}/change/", str(apply)),
    ]


def test_what_is_not_there_or_no_name_stays_text(rows: Rows) -> None:
    run = rows.pending()
    gone, short, kind = f"run-{new_row_id()}", str(run)[:-1], str(run).replace("run-", "session-")
    glued, upper = f"re{run} {run}x -{run} {run}-{run.pk}", str(run).upper()
    text = f"{gone} {short} {kind} {glued} {upper} run-../../{run.pk} run- {run.pk}"

    assert shown(text) == text


def test_everything_around_a_link_is_escaped(rows: Rows) -> None:
    run = rows.pending()
    text = f"{HOSTILE}{run}</a>{HOSTILE}"
    html = shown(text)

    assert links(html) == [(f"{RUNS}{run.pk}/change/", str(run))]
    assert re.findall(r"<(\w+)", html) == ["a"]
    assert unescape(re.sub(r"</?a[^>]*>", "", html)) == text


def test_however_many_are_named_the_database_is_asked_once_a_kind_and_for_a_bounded_number(
    rows: Rows,
) -> None:
    run = rows.pending()
    text = " ".join(f"run-{new_row_id()} apply-{new_row_id()}" for _ in range(MAX_NAMED))

    with CaptureQueriesContext(connection) as asked:
        found = pages_named([f"{run} {text}"] * 3)

    assert list(found) == [str(run)]
    assert len(asked) == 2
    assert sum(query["sql"].count("'") // 2 for query in asked) <= 2 * MAX_NAMED
    with CaptureQueriesContext(connection) as asked:
        assert pages_named(["nothing named", ""]) == {}
    assert len(asked) == 0


def test_only_notes_are_linked_and_on_every_page_that_shows_them(rows: Rows, session: Session) -> None:
    run = rows.pending()
    text = f"{HOSTILE} {run} waits."
    said = [
        user_row(row_id="u", at="", stamp="1", text=text),
        assistant_row(row_id="a", at="", blocks=[{"type": "text", "text": text}]),
        system_row(row_id="s", at="", kind="note", text=text),
    ]
    ui_log(session).parent.mkdir(parents=True)
    ui_log(session).write_bytes(encode([{"e": 0, "seq": seq, **add(row)} for seq, row in enumerate(said, 1)]))

    for page in ("chat", "change"):
        for who in ("reviewer", "operator"):
            html = browser(who).get(f"/admin/sessions_app/session/{session.pk}/{page}/").content.decode()
            assert links(html) == [(f"{RUNS}{run.pk}/change/", str(run))]
    assert [len(links(row_html(row))) for row in said] == [0, 0, 1]


def test_a_commands_answer_is_linked_without_a_script(
    rows: Rows, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rows.pending()

    def answer(context: CommandContext) -> CommandResult:
        return CommandResult(f"{context.argument} {run}.")

    monkeypatch.setitem(commands._registry, "tell", commands.Command("tell", answer, "/tell"))
    client = browser("operator")
    address = f"/admin/sessions_app/session/{session.pk}/chat/"
    client.post(address, {"action": "send", "text": f"/tell {HOSTILE}", "client_id": "c1"})
    html = client.get(address).content.decode()

    assert links(html) == [(f"{RUNS}{run.pk}/change/", str(run))]
    assert "<script>evil" not in html
    assert client.get(links(html)[0][0]).status_code == 200
    assert EvolutionRun.objects.count() == 1
