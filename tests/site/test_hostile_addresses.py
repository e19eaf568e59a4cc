"""Addresses nobody was given: ids and queries of every kind are answered in words, never with a fault of ours."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from core import clock
from core.db.api_tokens import issue
from core.db.models import record_event
from sessions_app.models import Session
from tests.evolution.landings import land
from tests.evolution.rows import Rows
from tests.site.chat_world import make_session
from tests.site.people import browser, person

pytestmark = pytest.mark.django_db

MODELS = (
    "auth/group",
    "auth/user",
    "core/apitoken",
    "core/event",
    "evolution/evolutionapply",
    "evolution/evolutionrun",
    "evolution/regressionscenario",
    "sessions_app/session",
    "workspaces/workspace",
)
IDS = [
    "\0",
    "a\0b",
    "-1",
    "1.0",
    "9" * 30,
    "9" * 5000,
    "x" * 400,
    "'--",
    "😀",
    "%",
    "_3E",
    "_",
    "../../etc/passwd",
]
PAGES = ("change", "delete", "history")
OWN = {
    "sessions_app/session": ("chat", "archive"),
    "evolution/evolutionrun": ("file",),
    "evolution/evolutionapply": ("rollback",),
}
QUERIES = [
    {"q": "\0"},
    {"q": "x" * 5000, "p": "9" * 30},
    {"p": "\0", "o": "-1.2.x"},
    {"o": "9" * 30, "all": "1"},
    {"_to_field": "password", "_popup": "1"},
]
OWN_QUERIES = {
    **{
        f"evolution/{name}": [
            dict.fromkeys(("status", "workspace", "agent", "archived", "state"), "\0"),
            {"before": "\0"},
            {"after": "9" * 30, "workspace": "9" * 30},
        ]
        for name in ("evolutionapply", "evolutionrun", "regressionscenario")
    },
    "sessions_app/session": [
        *[{name: "\0"} for name in ("workspace__id__exact", "kind__exact", "access_level__exact", "place")],
        *[{name: "9" * 30} for name in ("workspace__id__exact", "workspace", "id__exact")],
    ],
    "core/event": [{"kind__exact": "\0"}, {"id__exact": "9" * 30}, {"workspace_id": "9" * 30}],
    "workspaces/workspace": [{"id__exact": "9" * 30}, {"path": "\0"}],
    "auth/user": [{"groups__id__exact": "9" * 30}, {"is_active__exact": "\0"}],
    "core/apitoken": [{"id": "9" * 30}],
}
LEAKS = [
    ("core/apitoken", {"digest__startswith": "a"}),
    ("core/apitoken", {"user__password__startswith": "a"}),
    ("auth/user", {"password__startswith": "a"}),
    ("auth/user", {"api_tokens__digest__startswith": "a"}),
    ("sessions_app/session", {"runs__requested_by__password__startswith": "a"}),
]


@pytest.fixture(autouse=True)
def world(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    land(rows)
    make_session(tmp_path / "workspace")
    record_event(kind="session:changed", object_id="x", workspace_id=None, payload={}, now=clock.now())
    issue(user=person("reviewer"), name="t", scopes=["view"], days=1, now=clock.now())


@pytest.mark.parametrize("model", MODELS)
def test_an_id_that_nothing_has_is_not_found(model: str) -> None:
    client = browser("administrator")

    for identifier in IDS:
        for page in (*PAGES, *OWN.get(model, ())):
            address = f"/admin/{model}/{quote(identifier, safe='')}/{page}/"
            answer = client.get(address)
            # A stock page leads to the first page with a message, or refuses before it looks.
            assert answer.status_code in (302, 403, 404), (address[:100], answer.status_code)
            if answer.status_code == 302:
                assert answer["Location"].startswith("/admin/"), (address[:100], answer["Location"])


@pytest.mark.parametrize("model", MODELS)
def test_a_query_that_can_not_be_meant_is_answered(model: str) -> None:
    client = browser("administrator")

    for query in [*QUERIES, *OWN_QUERIES.get(model, [])]:
        answer = client.get(f"/admin/{model}/?{urlencode(query)}", follow=True)
        assert answer.status_code in (200, 400), (query, answer.status_code)


@pytest.mark.parametrize("page", ["change", "chat"])
@pytest.mark.parametrize("name", ["part", "before"])
def test_a_part_of_a_conversation_that_is_not_there_is_the_newest(page: str, name: str) -> None:
    session = Session.objects.get()
    for text in ("\0", "-1", "9" * 30, "7", "x", "1e3", "٣"):
        answer = browser("viewer").get(f"/admin/sessions_app/session/{session.pk}/{page}/", {name: text})
        assert answer.status_code == 200, text


@pytest.mark.parametrize(("model", "query"), LEAKS)
def test_no_list_can_be_asked_about_what_it_does_not_show(model: str, query: dict[str, str]) -> None:
    answer = browser("administrator").get(f"/admin/{model}/", query)

    assert answer.status_code == 400
