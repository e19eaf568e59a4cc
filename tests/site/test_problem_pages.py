"""What somebody is told when a page can't be shown: what happened, why, what to do; a program gets it as JSON."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import Client, RequestFactory

from core.db.models import Event
from halo_site import problems
from sessions_app.models import QueuedMessage, Session
from tests.site.chat_world import make_session
from tests.site.people import browser, person

pytestmark = pytest.mark.django_db

BIG = "x" * (3 * 1024 * 1024)
LOGIN = "/admin/login/"
NEW = "/admin/sessions_app/session/new/"


def words(answer: Any) -> str:
    """The text of a page of ours, which also has its look."""
    html = answer.content.decode()
    assert answer["Content-Type"].startswith("text/html")
    assert "halo/plain.css" in html
    assert "| Halo</title>" in html
    assert '<a class="go" href="/">' in html
    assert "Content-Security-Policy" in answer
    assert f"Status {answer.status_code}" in html
    return unescape(re.sub(r"<[^>]+>", " ", html.partition("<main>")[2]))


@pytest.fixture
def session(tmp_path: Path, halo_home: Path) -> Session:
    return make_session(tmp_path / "workspace")


@pytest.mark.parametrize("multipart", [True, False])
def test_a_form_that_is_too_large_is_told_its_limit_and_nothing_is_stored(
    session: Session, multipart: bool
) -> None:
    client = browser("operator")
    events = Event.objects.count()
    fields = {"agent": f"{session.workspace_id}:helper", "access": "readonly", "text": BIG, "client_id": "c1"}
    if multipart:
        answer = client.post(f"/admin/sessions_app/session/{session.pk}/chat/", fields)
    else:
        body = "&".join(f"{name}={value}" for name, value in fields.items())
        answer = client.post(NEW, body, content_type="application/x-www-form-urlencoded")

    assert answer.status_code == 413
    told = words(answer)
    assert "2.5 MB" in told
    assert "in parts" in told
    assert (Session.objects.count(), QueuedMessage.objects.count()) == (1, 0)
    assert Event.objects.count() == events


def test_too_many_fields_and_files_are_told_their_number(session: Session) -> None:
    client = browser("operator")
    fields = {f"f{number}": "x" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1)}

    answer = client.post(NEW, fields)

    assert answer.status_code == 413
    assert f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} fields at most" in words(answer)
    assert Session.objects.count() == 1


def test_what_can_not_be_read_and_another_host() -> None:
    broken = browser("operator").post(NEW, b"--x\r\n", content_type="multipart/form-data; boundary=\x80")
    elsewhere = Client().get("/admin/", headers={"Host": "evil.example"})

    assert (broken.status_code, elsewhere.status_code) == (400, 400)
    assert "load the page again" in words(broken)
    assert "ALLOWED_HOSTS" in words(elsewhere)
    assert "evil.example" not in elsewhere.content.decode()


def test_what_is_not_allowed_says_who_can_give_it(session: Session) -> None:
    told = words(refused := browser("reviewer").get(NEW))

    assert refused.status_code == 403
    assert "lacks the permission" in told
    assert "Operators" in told


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/admin/nowhere/", "was deleted"),
        ("/nowhere", "was deleted"),
        ("/admin/evolution/evolutionrun/nothing/change/", "There is no such run"),
        ("/admin/sessions_app/session/nothing/chat/", "There is no such session"),
    ],
)
def test_what_is_not_there(path: str, why: str) -> None:
    answer = browser("operator").get(path)

    assert answer.status_code == 404
    told = words(answer)
    assert why in told
    assert "dashboard" in told
    assert "tried" not in told  # Django's list of patterns


@pytest.mark.parametrize("path", ["/admin/logout/", "/admin/sessions_app/session/SESSION/authoring/"])
def test_an_address_that_only_takes_forms(session: Session, path: str) -> None:
    client = browser("operator")
    answer = client.get(path.replace("SESSION", session.pk))

    assert answer.status_code == 405
    assert "POST" in answer["Allow"]
    assert "only takes what a form sends" in words(answer)
    assert client.get("/admin/").status_code == 200


class TestAFormOfAnotherPage:
    def post(self, session: Session, *, cookie: str = "", **options: Any) -> Any:
        client = Client(enforce_csrf_checks=True)
        client.cookies = browser("operator").cookies
        if cookie:
            client.cookies["csrftoken"] = cookie
        fields = {"action": "send", "text": "Hello", "client_id": "c1"}
        answer = client.post(f"/admin/sessions_app/session/{session.pk}/chat/", fields, **options)
        assert answer.status_code == 403
        assert not QueuedMessage.objects.exists()
        return words(answer)

    def test_without_a_cookie(self, session: Session) -> None:
        assert "Allow cookies" in self.post(session)

    def test_of_before_a_login(self, session: Session) -> None:
        told = self.post(session, cookie="a" * 32)

        assert "out of date" in told
        assert "load the page again" in told

    def test_of_another_address(self, session: Session) -> None:
        told = self.post(session, cookie="a" * 32, headers={"Origin": "https://evil.example"})

        assert "another address" in told
        assert "HALO_TLS" in told


def test_a_failure_says_that_it_is_halos_and_when(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_given: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("halo_site.admin_site.read_dashboard", broken)
    client = browser("operator")
    client.raise_request_exception = False
    answer = client.get("/admin/")

    assert answer.status_code == 500
    told = words(answer)
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", told)
    assert "before you send it again" in told
    assert "secret detail" not in answer.content.decode()


def test_a_locked_out_login_says_for_how_long() -> None:
    name = person("reviewer").get_username()
    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        answer = Client().post(LOGIN, {"username": name, "password": "wrong"}, REMOTE_ADDR="198.51.100.20")

    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    told = words(answer)
    assert "15 minutes" in told
    assert "asks an administrator" in told


@pytest.mark.parametrize(
    ("made", "status", "code"),
    [
        (lambda request: problems.bad_request(request, ValueError()), 400, "bad_request"),
        (lambda request: problems.permission_denied(request, PermissionError()), 403, "forbidden"),
        (lambda request: problems.csrf_failure(request, "CSRF token missing."), 403, "csrf"),
        (lambda request: problems.page_not_found(request, ValueError()), 404, "not_found"),
        (problems.locked_out, 429, "locked_out"),
        (problems.server_error, 500, "internal"),
    ],
)
def test_a_program_gets_an_error_of_the_api(made: Any, status: int, code: str) -> None:
    answer: HttpResponse = made(RequestFactory().post("/api/sessions"))

    assert answer.status_code == status
    assert answer["Content-Type"] == "application/json"
    assert f'"error": "{code}"' in answer.content.decode()
    assert '"message": "' in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/nowhere", 404, "not_found"),
        ("/api/sessions", 413, "too_large"),
        ("/api/docs", 413, "too_large"),
    ],
)
def test_the_api_itself_answers_so(path: str, status: int, code: str) -> None:
    client = browser("operator")
    asked = client.post(path, {"text": BIG}) if status == 413 else client.get(path)
    elsewhere = Client().get(path, headers={"Host": "evil.example"})

    assert (asked.status_code, asked.json()["error"]) == (status, code)
    assert (elsewhere.status_code, elsewhere.json()["error"]) == (400, "bad_host")
    assert asked["Halo-API-Version"] == elsewhere["Halo-API-Version"] == "1"
