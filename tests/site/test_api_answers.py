"""What the REST API answers: decisions, pages, errors in one form, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from core.db.rest import pages
from evolution import request_rollback
from halo_site import api as api_module
from sessions_app.create import create_session
from sessions_app.places import ui_log
from tests.evolution.rows import Rows, facts, fresh
from tests.site.api_world import NOW, World, bearer, call, elsewhere, logged_in, person, token_for

HOSTILE_IDS = [
    "x",
    "run-",
    "%00",
    "..%2f..%2fetc",
    "run-" + "z" * 400,
    "%F0%9F%98%80",
    "%ff%fe",
    "a%3Eb",
    "'--",
]


@pytest.fixture
def world(db: None, tmp_path: Path, halo_home: Path) -> World:
    return World.make(Rows.make(tmp_path))


@pytest.fixture
def as_operator(world: World) -> Any:
    client, headers = Client(), bearer(token_for(person("operator")))

    def ask(method: str, path: str, body: Any = None, **more: str) -> Any:
        return call(client, method, f"/api{path}", body, **headers, **more)

    return ask


def test_approving_makes_an_apply_in_the_callers_name(world: World, as_operator: Any) -> None:
    run = world.in_review

    answer = as_operator("POST", f"/evolution/runs/run-{run.pk}/approve", {"attempt": 1, "hint": "only A"})

    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["runs"], shown["approvedBy"], shown["reviewerHint"]) == (
        [f"run-{run.pk}"],
        "operator",
        "only A",
    )
    assert fresh(run).status == "approved"
    assert shown["id"] == f"apply-{fresh(run).current_apply_id}"


def test_what_was_decided_on_another_attempt_is_refused(world: World, as_operator: Any) -> None:
    run = world.in_review
    before = facts()

    answers = [
        as_operator("POST", f"/evolution/runs/{run.pk}/approve", {"attempt": 7}),
        as_operator("POST", f"/evolution/runs/{run.pk}/reject", {"attempt": 7, "reason": "no"}),
        as_operator("POST", f"/evolution/runs/{run.pk}/retry", {"attempt": 7, "hint": None}),
    ]

    assert [(answer.status_code, answer.json()["error"]) for answer in answers] == [(409, "changed")] * 3
    assert facts() == before


def test_rejecting_retrying_and_cancelling_tell_the_run_as_it_is_then(world: World, as_operator: Any) -> None:
    run = world.in_review.pk

    rejected = as_operator("POST", f"/evolution/runs/{run}/reject", {"attempt": 1, "reason": "too long"})
    retried = as_operator("POST", f"/evolution/runs/{run}/retry", {"attempt": 1, "hint": "shorter"})
    cancelled = as_operator("POST", f"/evolution/runs/{run}/cancel")

    assert [answer.json()["status"] for answer in (rejected, retried, cancelled)] == [
        "rejected",
        "pending",
        "cancelled",
    ]
    notes = LogEntry.objects.filter(user__username="operator", object_id=run).order_by("pk")
    assert [entry.change_message for entry in notes] == [
        "Rejected over REST: too long",
        "Started over, over REST.",
        "Cancelled over REST.",
    ]
    assert (rejected.json()["decidedBy"], rejected.json()["decisionReason"]) == ("operator", "too long")
    assert retried.json()["hint"] == "shorter"


@pytest.mark.parametrize(
    ("path", "body", "code", "field"),
    [
        ("/evolution/runs/RUN/reject", {"attempt": 1, "reason": " "}, "reason_needed", "reason"),
        ("/evolution/runs/RUN/reject", {"attempt": 1, "reason": "x" * 4001}, "reason_too_long", "reason"),
        ("/evolution/runs/RUN/approve", {"attempt": 1, "hint": "x" * 4001}, "hint_too_long", "hint"),
        ("/evolution/runs/RUN/retry", {"attempt": 1, "hint": "x" * 4001}, "hint_too_long", "hint"),
        ("/evolution/approve", {"runs": []}, "nothing_chosen", "runs"),
        ("/sessions", {"workspace": "PLACE", "agent": "nobody"}, "unknown_agent", "agent"),
        ("/sessions", {"workspace": "PLACE", "workingDir": "../out"}, "bad_working_dir", "workingDir"),
        ("/sessions/SESSION/messages", {"clientId": "c", "text": "  "}, "empty_message", "text"),
        (
            "/sessions/SESSION/messages",
            {"clientId": "c", "text": "x", "images": [{"mediaType": "image/png", "data": "eA=="}]},
            "bad_image",
            "images",
        ),
    ],
)
def test_a_value_that_can_not_be_is_named_with_its_field(
    world: World, as_operator: Any, path: str, body: dict[str, Any], code: str, field: str
) -> None:
    known = {"RUN": world.in_review.pk, "SESSION": world.session.pk}
    for name, value in known.items():
        path = path.replace(name, value)
    if body.get("workspace") == "PLACE":
        body = {**body, "workspace": world.session.workspace_id}
    before = facts()

    answer = as_operator("POST", path, body)

    said = answer.json()
    assert (answer.status_code, said["error"]) == (400, code)
    assert said["fields"] == [{"field": field, "message": said["message"]}]
    assert facts() == before


def test_several_runs_go_into_one_apply_or_none_does(world: World, as_operator: Any) -> None:
    other = world.rows.in_review()
    chosen = [{"id": run.pk, "attempt": 1} for run in (world.in_review, other)]
    before = facts()

    refused = as_operator(
        "POST", "/evolution/approve", {"runs": [*chosen, {"id": world.pending.pk, "attempt": 0}]}
    )

    assert (refused.status_code, refused.json()["error"]) == (409, "not_approvable")
    assert facts() == before

    approved = as_operator("POST", "/evolution/approve", {"runs": chosen})

    assert sorted(approved.json()["runs"]) == sorted(f"run-{run.pk}" for run in (world.in_review, other))


def test_deleting_names_what_went(world: World, as_operator: Any) -> None:
    answer = as_operator("DELETE", f"/evolution/runs/run-{world.in_review.pk}")

    assert answer.json()["deleted"][0] == f"run-{world.in_review.pk}"
    assert as_operator("GET", f"/evolution/runs/{world.in_review.pk}").status_code == 404


def test_a_rollback_hands_on_what_was_seen(
    world: World, as_operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(request_rollback, "request_rollback", lambda **arguments: asked.append(arguments))
    seen = [{"rel": "INSTRUCTIONS.md", "kind": "overwrite", "state": "modified", "live": "x"}]

    answer = as_operator(
        "POST",
        f"/evolution/applies/apply-{world.applied.pk}/rollback",
        {"attempt": 1, "force": True, "seen": seen},
    )

    assert answer.status_code == 202
    assert [(item["attempts"], item["force"], item["seen"]) for item in asked] == [(1, True, seen)]
    assert asked[0]["user"].get_username() == "operator"


def test_lists_page_without_a_gap_or_a_repeat(world: World, as_operator: Any) -> None:
    for _ in range(5):
        world.rows.pending()
        create_session(
            workspace=world.rows.workspace, agent_id="helper", agent_name="H", access_level="full", now=NOW
        )
    elsewhere()

    for path in ("/evolution/runs", "/evolution/applies", "/sessions", "/workspaces"):
        whole = [item["id"] for item in as_operator("GET", f"{path}?limit=200").json()["items"]]
        paged: list[Any] = []
        cursor = ""
        while cursor is not None:
            answer = as_operator("GET", f"{path}?limit=2&cursor={cursor}").json()
            paged += [item["id"] for item in answer["items"]]
            cursor = answer["next"]
        assert paged == whole
        assert len(whole) >= 2


@pytest.mark.parametrize("path", ["/evolution/runs", "/evolution/applies", "/sessions", "/workspaces"])
@pytest.mark.parametrize(
    "cursor",
    ["x", "%00", "====", "W10", pages.encode(["a", "b", "c"]), pages.encode(["é"]), "A" * 5000,
     pages.encode(["9" * 30]), pages.encode(["0001-01-01T00:00:00+14:00", "x"]), pages.encode(["\0", "\0"])],
)  # fmt: skip
def test_a_cursor_nobody_gave_is_named(as_operator: Any, path: str, cursor: str) -> None:
    answer = as_operator("GET", f"{path}?cursor={cursor}")

    assert (answer.status_code, answer.json()["error"]) == (400, "bad_cursor")


@pytest.mark.parametrize("text", HOSTILE_IDS)
@pytest.mark.parametrize(
    "path", ["/evolution/runs/{}", "/evolution/applies/{}", "/sessions/{}", "/sessions/{}/log"]
)
def test_ids_nobody_has_are_not_found(as_operator: Any, path: str, text: str) -> None:
    answer = as_operator("GET", path.format(text))

    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"null", 422),
        (b"[]", 422),
        (b'{"attempt": true}', 422),
        (b'{"attempt": 1e999}', 422),
        (b'{"attempt": ' + b"9" * 5000 + b"}", 400),
        (b'{"attempt": 99999999999999999999}', 422),
        (b'{"attempt": 1, "hint": "\\ud800"}', 422),
        (b'{"attempt": 1, "himt": "a misspelled field"}', 422),
        (b'{"attempt": 1, "hint": "' + b"x" * 5000 + b'"}', 400),
    ],
)  # fmt: skip
def test_hostile_bodies_are_refused_in_words(
    world: World, as_operator: Any, body: bytes, status: int
) -> None:
    before = facts()
    secret = token_for(person("operator"))

    answer = Client().post(
        f"/api/evolution/runs/{world.in_review.pk}/approve",
        body,
        content_type="application/json",
        headers=bearer(secret),
    )

    assert answer.status_code == status
    assert set(answer.json()) >= {"error", "message"}
    assert facts() == before


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(2_000))),
        ("multipart/form-data; boundary=x", b"--x\r\nbroken"),
        ("multipart/form-data", b"no boundary"),
        ("text/plain", b"hello"),
        ("application/json; charset=nonsense", b"{}"),
    ],
)
def test_forms_and_odd_types_are_refused_by_cookie_too(world: World, content_type: str, body: bytes) -> None:
    client, headers = logged_in(person("operator"))
    before = facts()

    answer = client.generic(
        "POST",
        f"/api/evolution/runs/{world.in_review.pk}/approve",
        body,
        content_type=content_type,
        headers=headers,
    )

    assert answer.status_code in (400, 422)
    assert set(answer.json()) >= {"error", "message"}
    assert facts() == before


def test_what_does_not_fit_is_named_field_by_field(world: World, as_operator: Any) -> None:
    answer = as_operator("GET", "/evolution/runs?limit=0&status=odd")

    assert answer.status_code == 422
    assert sorted(item["field"] for item in answer.json()["fields"]) == ["limit", "status"]


def test_paths_and_methods_that_are_not_there_answer_in_the_same_form(as_operator: Any) -> None:
    missing, wrong = as_operator("GET", "/nothing/here"), as_operator("PATCH", "/workspaces")

    assert (missing.status_code, missing.json()["error"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["error"]) == (405, "method_not_allowed")
    assert "GET" in wrong["Allow"]


def test_the_version_stands_on_every_answer_and_another_is_refused(as_operator: Any) -> None:
    answers = [as_operator("GET", "/workspaces"), as_operator("GET", "/nothing")]

    assert [answer["Halo-API-Version"] for answer in answers] == ["1", "1"]
    other = as_operator("GET", "/workspaces", **{"Halo-API-Version": "2"})
    assert (other.status_code, other.json()["error"]) == (400, "unknown_version")


def test_large_bodies_are_refused_before_they_are_read(world: World, as_operator: Any) -> None:
    answer = as_operator("POST", "/evolution/runs", {"session": "x", "hint": "x" * 1_100_000})

    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")


def test_too_many_requests_are_told_to_wait(as_operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module.UserThrottle, "throttle_success", lambda self: self.throttle_failure())

    answer = as_operator("GET", "/workspaces")

    assert (answer.status_code, answer.json()["error"]) == (429, "too_fast")
    assert int(answer["Retry-After"]) >= 1


def test_a_fault_of_ours_is_told_in_the_same_form(as_operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(pages, "page", broken)

    answer = as_operator("GET", "/workspaces")

    assert (answer.status_code, answer.json()["error"]) == (500, "internal")
    assert "secret" not in answer.content.decode()


def test_a_log_is_read_on_from_the_last_record(world: World, as_operator: Any) -> None:
    path = ui_log(world.session)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"t":"drop","e":1,"seq":{seq},"id":"r{seq}"}}\n' for seq in range(1, 6)))
    url = f"/sessions/{world.session.pk}/log"

    first = as_operator("GET", f"{url}?limit=2").json()
    rest = as_operator("GET", f"{url}?after={first['last']}").json()
    nothing = as_operator("GET", f"{url}?after={rest['last']}").json()

    assert [record["seq"] for record in first["records"]] == [1, 2]
    assert first["more"] is True
    assert [record["seq"] for record in rest["records"]] == [3, 4, 5]
    assert (rest["more"], nothing) == (
        False,
        {"records": [], "last": 5, "more": False, "reload": False},
    )


def test_settings_are_changed_all_or_none_and_secrets_never_shown(world: World, as_operator: Any) -> None:
    good = {"general.evolution.control_run": False, "anthropic.secrets.api_key": "sk-hidden"}

    refused = as_operator("PUT", "/settings", {"values": {**good, "general.evolution.level": "L9"}})
    untouched = as_operator("GET", "/settings").json()["settings"]
    changed = as_operator("PUT", "/settings", {"values": good})

    assert (refused.status_code, refused.json()["error"]) == (400, "settings_refused")
    assert [item["field"] for item in refused.json()["fields"]] == ["general.evolution.level"]
    assert untouched["general.evolution.control_run"]["source"] == "default"
    assert changed.json()["settings"]["general.evolution.control_run"]["value"] is False
    assert "sk-hidden" not in changed.content.decode()


def test_a_run_that_cannot_be_asked_for_says_why(world: World, as_operator: Any) -> None:
    silent = create_session(
        workspace=world.rows.workspace, agent_id="helper", agent_name="Helper", access_level="full", now=NOW
    )
    before = facts()

    empty = as_operator("POST", "/evolution/runs", {"session": silent.pk, "hint": "shorter"})
    unknown = as_operator("POST", "/evolution/runs", {"session": "nobody"})

    assert (empty.status_code, empty.json()["error"]) == (409, "no_user_message")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "not_found")
    assert facts() == before


def test_the_document_and_its_page_are_there_without_a_script(db: None) -> None:
    page = Client().get("/api/docs")

    assert Client().get("/api/openapi.json").json()["openapi"].startswith("3.")
    assert page.status_code == 200
    text = page.content.decode()
    assert "/api/evolution/runs/{run_id}/approve" in text
    assert not any(mark in text for mark in ("<script", "<style", "style="))
    assert "//" not in text.replace("https://", "")
