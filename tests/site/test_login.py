"""Getting in: who, how often one may try, and what a browser may do with the pages."""

from __future__ import annotations

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.conf import settings
from django.test import Client

from tests.site.people import browser, person

pytestmark = pytest.mark.django_db

RIGHT = "a right password 17"


@pytest.fixture
def reviewer() -> str:
    user = person("reviewer")
    user.set_password(RIGHT)
    user.save()
    return str(user.get_username())


def log_in(client: Client, name: str, password: str, address: str = "198.51.100.7") -> int:
    answer = client.post(
        "/admin/login/?next=/admin/", {"username": name, "password": password}, REMOTE_ADDR=address
    )
    return answer.status_code


def is_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def test_a_member_of_a_group_gets_in_without_being_staff(reviewer: str) -> None:
    client = Client()

    assert log_in(client, reviewer, RIGHT) == 302
    assert is_in(client)


def test_whoever_may_see_nothing_is_told_so_and_stays_out() -> None:
    user = person("plain")
    user.set_password(RIGHT)
    user.save()
    client = Client()

    answer = client.post("/admin/login/", {"username": user.get_username(), "password": RIGHT})

    assert "group Reviewers" in answer.content.decode()
    assert not is_in(client)


@pytest.mark.parametrize("wanted", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", ""])
def test_an_address_that_is_not_ours_leads_to_the_dashboard(reviewer: str, wanted: str) -> None:
    answer = Client().post(
        "/admin/login/", {"username": reviewer, "password": RIGHT, "next": wanted}, REMOTE_ADDR="198.51.100.8"
    )

    assert (answer.status_code, answer["Location"]) == (302, "/admin/")


def test_after_ten_wrong_passwords_the_right_one_is_refused_too(reviewer: str) -> None:
    client = Client()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        log_in(client, reviewer, "wrong")

    assert log_in(client, reviewer, RIGHT) == 429
    assert not is_in(client)


def test_a_name_spelled_otherwise_is_the_same_name(reviewer: str) -> None:
    """Django takes names in a compatibility form: these letters are as wide as a Chinese character."""
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in reviewer)
    for number in range(settings.AXES_FAILURE_LIMIT):
        log_in(Client(), wide if number % 2 else f" {reviewer} ", "wrong")

    assert log_in(Client(), reviewer, RIGHT) == 429


def test_an_address_that_a_request_claims_to_come_from_is_not_believed(reviewer: str) -> None:
    for number in range(settings.AXES_FAILURE_LIMIT):
        claims = {"HTTP_X_FORWARDED_FOR": f"192.0.2.{number}", "HTTP_X_REAL_IP": f"192.0.2.{number}"}
        Client().post(
            "/admin/login/", {"username": reviewer, "password": "wrong"}, REMOTE_ADDR="198.51.100.7", **claims
        )

    assert log_in(Client(), reviewer, RIGHT) == 429


def test_no_row_holds_a_password_that_was_tried(reviewer: str) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        log_in(Client(), reviewer, "a-wrong-one-19")

    kept = [row for model in apps.get_models() for row in model._default_manager.values()]
    assert AccessAttempt.objects.count() == 1
    assert "a-wrong-one-19" not in str(kept)


def test_a_session_from_before_the_login_is_not_the_one_after_it(reviewer: str) -> None:
    client = Client()
    session = client.session
    session["planted"] = True
    session.save()
    client.cookies["sessionid"] = planted = session.session_key

    assert log_in(client, reviewer, RIGHT) == 302

    cookie = client.cookies["sessionid"]
    assert cookie.value != planted
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    thief = Client()
    thief.cookies["sessionid"] = planted
    assert not is_in(thief)


def test_another_password_ends_every_other_login(reviewer: str) -> None:
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        assert log_in(client, reviewer, RIGHT) == 302
    new = "another right one 18"

    here.post("/admin/password_change/", {"old_password": RIGHT, "new_password1": new, "new_password2": new})

    assert (is_in(here), is_in(elsewhere)) == (True, False)


def test_somebody_elses_wrong_passwords_lock_nobody_out_elsewhere(reviewer: str) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT + 1):
        log_in(Client(), reviewer, "wrong", address="203.0.113.9")

    client = Client()

    assert log_in(client, reviewer, RIGHT) == 302
    assert is_in(client)


def test_a_locked_out_person_is_told_what_to_do_in_plain_words(reviewer: str) -> None:
    client = Client()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        log_in(client, reviewer, "wrong")

    answer = client.post(
        "/admin/login/", {"username": reviewer, "password": RIGHT}, REMOTE_ADDR="198.51.100.7"
    )

    assert "15 minutes" in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/admin/", 200), ("/admin/settings/", 200), ("/admin/nowhere/", 404), ("/healthz", 200), ("/", 302)],
)
def test_the_policy_stands_on_every_page(path: str, status: int) -> None:
    answer = browser("administrator").get(path)
    policy = {
        words[0]: words[1:]
        for part in answer.headers["Content-Security-Policy"].split(";")
        if (words := part.split())
    }

    assert answer.status_code == status
    assert policy["default-src"] == ["'none'"]
    assert set(policy["script-src"]) <= {"'self'", "'unsafe-eval'"}
    assert policy["img-src"] == ["'self'", "data:"]
    assert policy["frame-ancestors"] == ["'none'"]
    assert policy["base-uri"] == ["'none'"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert "camera=()" in answer.headers["Permissions-Policy"]


def test_expressions_are_evaluated_on_the_pages_of_the_admin_alone() -> None:
    client = browser("administrator")

    assert "unsafe-eval" in client.get("/admin/").headers["Content-Security-Policy"]
    assert "unsafe-eval" in Client().get("/admin/login/").headers["Content-Security-Policy"]
    assert "unsafe-eval" not in client.get("/healthz").headers["Content-Security-Policy"]
