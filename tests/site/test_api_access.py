"""Who may do what at the REST API: every operation, for everyone, by cookie and by token."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core import clock
from core.db.api_tokens import SCOPES, issue, revoke
from core.db.models import ApiToken
from core.paths import halo_home as home_of
from core.settings_file import Settings
from sessions_app.models import QueuedMessage, Session
from tests.evolution.rows import Rows, facts
from tests.site.api_world import (
    PEOPLE,
    Operation,
    World,
    bearer,
    call,
    logged_in,
    operations,
    person,
    token_for,
)

OPERATIONS = operations()
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


@pytest.fixture
def world(db: None, tmp_path: Path, halo_home: Path) -> World:
    return World.make(Rows.make(tmp_path))


def _missing(name: str, operation: Operation) -> str:
    """The first permission they lack for it; the session it is tried on has full access."""
    has = {f"workspaces.{codename}" for codename in PEOPLE[name]}
    needed = [operation.permission, *([operation.at_full] if operation.at_full else [])]
    return next((permission for permission in needed if permission not in has), "")


def _state() -> list[object]:
    sessions = Session.objects.order_by("pk").values_list("pk", "access_level", "asked", "stopped_at")
    queued = QueuedMessage.objects.order_by("pk").values_list("pk", "session", "text", "worked_at")
    return [*facts(), *sessions, *queued, Settings.load(home_of()).get("general.evolution.control_run")]


def test_every_operation_names_a_scope_and_a_permission() -> None:
    assert len(OPERATIONS) > 20
    assert {operation.scope for operation in OPERATIONS} == set(SCOPES)
    assert all(operation.permission.startswith("workspaces.") for operation in OPERATIONS)


def test_what_changes_something_never_needs_the_permission_to_view_alone() -> None:
    changing = [operation for operation in OPERATIONS if operation.method != "GET"]

    assert changing
    assert not [operation for operation in changing if operation.permission == "workspaces.view"]


@every_operation
def test_a_stranger_is_asked_who_they_are_and_changes_nothing(world: World, operation: Operation) -> None:
    path, body = world.request_of(operation)
    before = _state()

    answer = call(Client(), operation.method, path, body)

    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert _state() == before


@every_operation
@pytest.mark.parametrize("way", ["cookie", "token"])
@pytest.mark.parametrize("name", sorted(PEOPLE))
def test_everyone_may_what_their_permissions_say(
    world: World, operation: Operation, name: str, way: str
) -> None:
    user = person(name)
    path, body = world.request_of(operation)
    client, headers = logged_in(user) if way == "cookie" else (Client(), bearer(token_for(user)))
    before = _state()

    answer = call(client, operation.method, path, body, **headers)

    missing = _missing(name, operation)
    if not missing:
        assert answer.status_code in (200, 201, 202, 409)
    else:
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        assert answer.json()["permission"] == missing
        assert _state() == before


@every_operation
def test_a_token_without_the_scope_opens_nothing_more_than_its_scopes(
    world: World, operation: Operation
) -> None:
    others = [scope for scope in SCOPES if scope != operation.scope]
    path, body = world.request_of(operation)
    before = _state()

    answer = call(Client(), operation.method, path, body, **bearer(token_for(person("operator"), *others)))

    assert (answer.status_code, answer.json()["error"]) == (403, "scope")
    assert _state() == before


@pytest.mark.parametrize(
    "operation",
    [operation for operation in OPERATIONS if operation.method != "GET"],
    ids=lambda operation: operation.name,
)
def test_a_cookie_alone_changes_nothing(world: World, operation: Operation) -> None:
    client, _ = logged_in(person("operator"))
    path, body = world.request_of(operation)
    before = _state()

    answer = call(client, operation.method, path, body)

    assert (answer.status_code, answer.json()["error"]) == (403, "csrf")
    assert _state() == before


def test_a_wrong_token_is_refused_even_beside_a_good_session(world: World) -> None:
    client, headers = logged_in(person("operator"))

    answer = call(client, "GET", "/api/workspaces", **headers, **bearer("halo_wrong"))

    assert (answer.status_code, answer.json()["error"]) == (401, "bad_token")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic YTpi", "halo_x", "Bearer \x00", "Bearer ü"]
)
def test_odd_authorization_headers_are_nobody(world: World, header: str) -> None:
    answer = call(Client(), "GET", "/api/workspaces", Authorization=header)

    assert answer.status_code == 401


def test_a_revoked_an_expired_and_an_inactive_persons_token_open_nothing(world: World) -> None:
    user = person("operator")
    revoked, live = (
        issue(user=user, name=name, scopes=["view"], days=1, now=clock.now()) for name in ("a", "b")
    )
    old = issue(user=user, name="c", scopes=["view"], days=1, now=clock.now() - timedelta(days=2))
    assert revoke(revoked.token.pk, now=clock.now())

    def status(secret: str) -> int:
        return call(Client(), "GET", "/api/workspaces", **bearer(secret)).status_code

    assert [status(item.secret) for item in (revoked, old, live)] == [401, 401, 200]

    user.is_active = False
    user.save()
    assert status(live.secret) == 401


def test_the_database_holds_no_secret(world: World) -> None:
    secret = token_for(person("operator"))

    row = ApiToken.objects.values().get()

    assert secret not in str(row) and secret.removeprefix("halo_") not in str(row)


def _token_may(*scopes: str) -> dict[str, str]:
    return bearer(token_for(person("operator"), *scopes))


@pytest.mark.parametrize("level", ["workspace", "readonly"])
def test_whoever_may_chat_may_send_below_full_access(world: World, level: str) -> None:
    Session.objects.update(access_level=level)
    client, headers = logged_in(person("chatter"))
    body = {"clientId": "c1", "text": "hello"}

    answer = call(client, "POST", f"/api/sessions/{world.session.pk}/messages", body, **headers)

    assert answer.status_code == 202
    assert [row.text for row in QueuedMessage.objects.all()] == ["hello"]


def test_a_token_sends_to_full_access_with_both_scopes_only(world: World) -> None:
    path, body = f"/api/sessions/{world.session.pk}/messages", {"clientId": "c1", "text": "hello"}
    before = _state()

    narrow = call(Client(), "POST", path, body, **_token_may("chat"))
    assert _state() == before
    wide = call(Client(), "POST", path, body, **bearer(token_for(User.objects.get(username="operator"))))

    assert (narrow.status_code, narrow.json()["permission"]) == (403, "workspaces.use_full_access")
    assert wide.status_code == 202


@pytest.mark.parametrize(
    ("name", "wanted", "level"),
    [
        ("operator", None, "full"),
        ("operator", "readonly", "readonly"),
        ("chatter", None, "workspace"),
        ("chatter", "readonly", "readonly"),
        ("chatter", "full", ""),
    ],
)
def test_a_session_starts_at_the_highest_level_its_user_may_use(
    world: World, name: str, wanted: str | None, level: str
) -> None:
    client, headers = logged_in(person(name))
    body = {"workspace": world.session.workspace_id, "access": wanted}
    before = _state()

    answer = call(client, "POST", "/api/sessions", body, **headers)

    if level:
        assert (answer.status_code, answer.json()["access"], answer.json()["agent"]) == (201, level, "helper")
    else:
        assert (answer.status_code, answer.json()["permission"]) == (403, "workspaces.use_full_access")
        assert _state() == before
