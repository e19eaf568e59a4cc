"""Sessions over REST: started, written to, stopped; what is acknowledged is stored once."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from sessions_app import lease
from sessions_app.models import QueuedMessage, Session
from sessions_app.worker import Worker
from tests.evolution.rows import Rows
from tests.site.api_world import World, bearer, call, person, token_for

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.fixture
def world(db: None, tmp_path: Path, halo_home: Path) -> World:
    return World.make(Rows.make(tmp_path))


@pytest.fixture
def as_operator(world: World) -> Any:
    client, headers = Client(), bearer(token_for(person("operator")))

    def ask(method: str, path: str, body: Any = None) -> Any:
        return call(client, method, f"/api{path}", body, **headers)

    return ask


def _queued() -> list[tuple[str, str]]:
    return list(QueuedMessage.objects.order_by("pk").values_list("client_id", "text"))


def test_a_session_is_started_in_its_directory(world: World, as_operator: Any) -> None:
    folder = world.session.workspace.paths.root / "docs"
    folder.mkdir()

    answer = as_operator(
        "POST",
        "/sessions",
        {"workspace": world.session.workspace_id, "agent": "helper", "workingDir": "docs"},
    )

    assert answer.status_code == 201
    row = Session.objects.get(pk=answer.json()["id"])
    assert (row.agent_id, row.working_dir, row.access_level, row.kind) == ("helper", "docs", "full", "chat")
    assert as_operator("GET", f"/sessions/{row.pk}").json() == answer.json()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"agent": "nobody"}, 400, "unknown_agent"),
        ({"workingDir": "../elsewhere"}, 400, "bad_working_dir"),
        ({"workingDir": "missing"}, 400, "bad_working_dir"),
        ({"workingDir": "x" * 600}, 400, "bad_working_dir"),
        ({"workingDir": "/" + "x" * 600}, 400, "bad_working_dir"),
        ({"workingDir": "a\0b"}, 400, "bad_working_dir"),
        ({"workingDir": "/a\0b"}, 400, "bad_working_dir"),
        ({"workspace": 4711}, 404, "not_found"),
        ({"access": "root"}, 422, "does_not_fit"),
        ({"acces": "full"}, 422, "does_not_fit"),
    ],
)
def test_a_session_that_can_not_be_is_refused(
    world: World, as_operator: Any, body: dict[str, Any], status: int, code: str
) -> None:
    answer = as_operator("POST", "/sessions", {"workspace": world.session.workspace_id, **body})

    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert Session.objects.count() == 1


def test_a_message_sent_again_is_acknowledged_and_stored_once(world: World, as_operator: Any) -> None:
    url = f"/sessions/{world.session.pk}/messages"
    answers = [as_operator("POST", url, {"clientId": "c1", "text": "hello"}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["stamp"] == QueuedMessage.objects.get().stamp
    assert _queued() == [("c1", "hello")]


def test_pictures_come_along(world: World, as_operator: Any) -> None:
    image = {"mediaType": "image/png", "data": base64.b64encode(PNG).decode()}
    url = f"/sessions/{world.session.pk}/messages"

    answer = as_operator("POST", url, {"clientId": "c1", "text": "what is this?", "images": [image]})

    assert answer.status_code == 202
    [kept] = QueuedMessage.objects.get().images
    assert (kept["media_type"], base64.urlsafe_b64decode(kept["data"])) == ("image/png", PNG)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": "   "}, 400, "empty_message"),
        ({"text": ""}, 400, "empty_message"),
        ({"text": "a", "images": [{"mediaType": "image/png", "data": "bm8="}]}, 400, "bad_image"),
        ({"text": "a", "images": [{"mediaType": "image/png", "data": "%"}]}, 400, "bad_image"),
        ({"text": "a", "images": [{"mediaType": "text/html", "data": ""}]}, 400, "bad_image"),
        ({"text": "a", "clientId": ""}, 422, "does_not_fit"),
        ({"text": "a", "clientId": "x" * 129}, 422, "does_not_fit"),
        ({"txt": "a"}, 422, "does_not_fit"),
    ],
)
def test_a_message_that_can_not_be_is_refused(
    world: World, as_operator: Any, body: dict[str, Any], status: int, code: str
) -> None:
    answer = as_operator("POST", f"/sessions/{world.session.pk}/messages", {"clientId": "c", **body})

    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert _queued() == []


def test_an_archived_session_takes_no_message(world: World, as_operator: Any) -> None:
    Session.objects.update(archived_at=world.rows.now)

    answer = as_operator("POST", f"/sessions/{world.session.pk}/messages", {"clientId": "c", "text": "hello"})

    assert (answer.status_code, answer.json()["error"]) == (409, "archived")
    assert _queued() == []


def test_a_command_is_answered_at_once_and_stored_nowhere(world: World, as_operator: Any) -> None:
    url = f"/sessions/{world.session.pk}/messages"

    answer = as_operator("POST", url, {"clientId": "c1", "text": "/session info"})
    unknown = as_operator("POST", url, {"clientId": "c2", "text": "/nothing"})

    assert (answer.status_code, answer.json()["stamp"]) == (202, None)
    assert answer.json()["answer"]["ok"] and world.session.pk in answer.json()["answer"]["text"]
    assert unknown.json()["answer"]["ok"] is False
    assert _queued() == []


@pytest.mark.parametrize("verb", ["stop", "interrupt"])
def test_what_needs_the_worker_says_so_without_one(world: World, as_operator: Any, verb: str) -> None:
    answer = as_operator("POST", f"/sessions/{world.session.pk}/{verb}")

    assert (answer.status_code, answer.json()["error"]) == (409, "not_in_server")


@pytest.mark.parametrize("verb", ["stop", "interrupt"])
def test_where_nothing_runs_nothing_can_be_ended(
    world: World, as_operator: Any, working: Worker, verb: str
) -> None:
    answer = as_operator("POST", f"/sessions/{world.session.pk}/{verb}")

    assert (answer.status_code, answer.json()["error"]) == (409, "not_working")
    assert Session.objects.get().asked == ""


@pytest.mark.parametrize("verb", ["stop", "interrupt"])
def test_a_turn_of_another_process_is_asked_to_end(
    world: World, as_operator: Any, working: Worker, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    held = lease.acquire(world.session.pk)
    monkeypatch.setattr("sessions_app.requests.ProcessIdentity.current", lambda: None)

    answer = as_operator("POST", f"/sessions/{world.session.pk}/{verb}")

    assert answer.status_code == 202
    row = Session.objects.get()
    assert (row.asked, row.asked_epoch) == (verb, held.epoch)
