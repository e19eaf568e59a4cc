"""Every address of the site, tried by everybody: what a person may not do is refused by the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from core import clock
from core.db.api_tokens import issue
from core.db.models import Event, record_event
from evolution.models import EvolutionRun
from sessions_app.models import Session
from tests.evolution.landings import land
from tests.evolution.rows import Rows
from tests.site.people import KINDS, browser, person

pytestmark = pytest.mark.django_db

PUBLIC = {"healthz", "readyz", "admin:login", "admin:logout"}
"""What strangers may ask; the API has its own matrix."""

LOOK = {"administrator", "operator", "reviewer", "viewer", "chatter"}
MAY_GET: dict[str, set[str]] = {
    "admin:index": LOOK,
    "admin:dashboard": LOOK,
    "admin:settings": LOOK,
    "admin:password_change": LOOK,
    "admin:evolution_evolutionrun_changelist": LOOK,
    "admin:evolution_evolutionrun_change": LOOK,
    "admin:evolution_evolutionapply_changelist": LOOK,
    "admin:evolution_evolutionapply_change": LOOK,
    "admin:evolution_regressionscenario_changelist": LOOK,
    "admin:evolution_regressionscenario_change": LOOK,
    "admin:sessions_app_session_changelist": LOOK,
    "admin:sessions_app_session_change": LOOK,
    "admin:workspaces_workspace_changelist": LOOK,
    "admin:workspaces_workspace_change": LOOK,
    "admin:core_event_changelist": LOOK,
    "admin:core_event_change": LOOK,
    "admin:auth_user_changelist": {"administrator"},
    "admin:auth_user_add": {"administrator"},
    "admin:auth_user_change": {"administrator"},
    "admin:auth_group_changelist": {"administrator"},
    "admin:auth_group_change": {"administrator"},
    "admin:workspaces_workspace_add": set(),
    "admin:workspaces_workspace_delete": set(),
    "admin:evolution_evolutionrun_add": set(),
    "admin:sessions_app_session_chat": LOOK,
    "admin:sessions_app_session_new": {"administrator", "operator", "chatter"},
    "admin:sessions_app_session_archive": {"administrator", "operator", "chatter"},
    "admin:evolution_regressionscenario_add": set(),
    "admin:evolution_regressionscenario_delete": set(),
    "admin:sessions_app_session_add": set(),
    "admin:sessions_app_session_delete": set(),
    "admin:core_event_add": set(),
    "admin:core_event_delete": set(),
}


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    made = Rows.make(tmp_path)
    made.in_review()
    made.approved()
    land(made)
    Session.objects.create(
        id="s0123456789abcdef",
        workspace=made.workspace,
        agent_id="writer",
        agent_name="Writer",
        access_level="full",
        created_at=made.now,
        last_activity_at=made.now,
    )
    record_event(kind="session:changed", object_id="x", workspace_id=None, payload={}, now=clock.now())
    issue(user=person("reviewer"), name="t", scopes=["view"], days=1, now=clock.now())
    return made


def addresses() -> Iterator[tuple[str, str]]:
    """(name, path) of every address outside the API, its arguments filled with rows that exist."""
    for pattern, namespace in _patterns(get_resolver().url_patterns, ""):
        if namespace.startswith("api") or not pattern.name:
            continue
        name = f"{namespace}{pattern.name}"
        yield name, reverse(name, kwargs={key: _value(key, pattern.name) for key in _parameters(pattern)})


def _patterns(patterns: list[URLPattern | URLResolver], namespace: str) -> Iterator[tuple[URLPattern, str]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _patterns(pattern.url_patterns, inner)
        else:
            yield pattern, namespace


def _parameters(pattern: URLPattern) -> list[str]:
    found = getattr(pattern.pattern, "converters", None) or pattern.pattern.regex.groupindex
    return list(found)


def _value(parameter: str, name: str) -> Any:
    if parameter in ("app_label", "url"):
        return {"app_label": "evolution", "url": "nowhere"}[parameter]
    if parameter == "content_type_id":
        return ContentType.objects.get_for_model(User).pk
    for model in apps.get_models():
        if name.startswith(f"{model._meta.app_label}_{model._meta.model_name}"):
            row = model._default_manager.first()
            return row.pk if row is not None else 1
    return User.objects.values_list("pk", flat=True)[0] if parameter == "id" else 1


def is_refused(answer: HttpResponseBase) -> bool:
    if answer.status_code == 302:
        return answer.headers["Location"].startswith("/admin/login/")
    return answer.status_code in (401, 403)


@pytest.mark.parametrize("kind", ["anonymous", "plain"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_whoever_may_not_look_is_refused_everywhere(rows: Rows, kind: str, method: str) -> None:
    client = browser(kind)

    for name, path in addresses():
        if name in PUBLIC:
            continue
        answer = getattr(client, method)(path)
        assert is_refused(answer), f"{method} {path} ({name}): {answer.status_code} for {kind}"


@pytest.mark.parametrize("kind", sorted(LOOK))
def test_who_may_open_which_page(rows: Rows, kind: str) -> None:
    client = browser(kind)
    asked = set()

    for name, path in addresses():
        answer = client.get(path)
        assert answer.status_code < 500, f"{path} ({name}): {answer.status_code} for {kind}"
        if name in MAY_GET:
            asked.add(name)
            expected = 200 if kind in MAY_GET[name] else 403
            assert answer.status_code == expected, f"{path} ({name}): {answer.status_code} for {kind}"

    assert asked == set(MAY_GET)


REVIEW, ROLL_BACK, CHAT, OPERATE = (
    {"administrator", "operator", "reviewer"},
    {"administrator", "operator", "reviewer"},
    {"administrator", "operator", "chatter"},
    {"administrator", "operator"},
)
MAY_POST: dict[str, tuple[set[str], list[dict[str, str]]]] = {
    "admin:password_change": (LOOK, [{}]),
    "admin:settings": (OPERATE, [{"set:general.evolution.max_attempts": "2"}]),
    "admin:evolution_evolutionrun_changelist": (
        REVIEW,
        [{"action": "approve", "run": "SEEN"}, {"action": "reject", "run": "SEEN", "text": "no"}],
    ),
    "admin:evolution_evolutionrun_decide": (
        REVIEW,
        [
            {"action": "approve", "attempt": "1"},
            {"action": "reject", "attempt": "1", "text": "no"},
            {"action": "retry", "attempt": "1", "hint_choice": "keep"},
            {"action": "cancel"},
        ],
    ),
    "admin:evolution_evolutionrun_delete": (REVIEW, [{"plan": "x"}]),
    "admin:evolution_evolutionapply_decide": (REVIEW, [{"action": "cancel"}, {"action": "try-again"}]),
    "admin:evolution_evolutionapply_rollback": (ROLL_BACK, [{"shown": "x"}]),
    "admin:evolution_regressionscenario_decide": (
        REVIEW,
        [{"action": "retire", "text": "old"}, {"action": "restore"}],
    ),
    "admin:sessions_app_session_chat": (
        OPERATE,  # it has full access
        [{"action": "send", "text": "Hello", "client_id": "c1"}],
    ),
    "admin:sessions_app_session_archive": (CHAT, [{"sessions": "1", "newest": "0"}]),
    "admin:sessions_app_session_rename": (CHAT, [{"title": "Another name"}]),
    "admin:sessions_app_session_authoring": (OPERATE, [{"action": "open"}, {"action": "close"}]),
    "admin:sessions_app_session_new": (
        CHAT,
        [{"agent": "PLACE:writer", "access": "readonly", "text": "Hello"}],
    ),
    "admin:core_apitoken_changelist": ({"administrator"}, [{"action": "revoke", "_selected_action": "1"}]),
    **{
        f"admin:auth_{what}": ({"administrator"}, [{}])
        for what in (
            *("user_changelist", "user_add", "user_change", "user_delete", "user_password_change"),
            *("group_changelist", "group_add", "group_change", "group_delete"),
        )
    },
}
"""Who may send what where; whatever is sent elsewhere changes nothing."""


@pytest.mark.parametrize("kind", KINDS)
def test_who_may_send_what_where(rows: Rows, kind: str, halo_home: Path) -> None:
    client, seen = browser(kind), set()

    for name, path in addresses():
        if name in PUBLIC:
            continue
        allowed, forms = MAY_POST.get(name, (set(), [{}]))
        seen.add(name)
        for form in forms:
            before = _state()
            with transaction.atomic():
                answer = client.post(path, _filled(form))
                after = _state()
                transaction.set_rollback(True)
            where = f"{path} ({name}) with {form}: {answer.status_code} for {kind}"
            if kind in allowed:
                assert not is_refused(answer) and answer.status_code != 405, where
            else:
                assert after == before, where
                assert (
                    is_refused(answer) or answer.status_code == 405 or (name not in MAY_POST and kind in LOOK)
                ), where

    assert set(MAY_POST) <= seen


def _filled(form: dict[str, str]) -> dict[str, str]:
    run = EvolutionRun.objects.order_by("pk")[0]
    known = {"SEEN": f"{run.pk}:{run.attempts}:", "PLACE:writer": f"{run.workspace_id}:writer"}
    return {key: known.get(value, value) for key, value in form.items()}


def _state() -> list[Any]:
    ours = [model for model in apps.get_models() if model._meta.app_label not in ("sessions", "axes")]
    return [list(model._default_manager.order_by("pk").values()) for model in ours]


@pytest.mark.parametrize("kind", KINDS)
def test_machine_written_rows_are_changed_by_nobody_here(rows: Rows, kind: str) -> None:
    client = browser(kind)
    before = (Event.objects.count(), Session.objects.values().get(), rows.workspace.path)

    for name in ("core_event", "sessions_app_session", "workspaces_workspace"):
        model = apps.get_model(*name.rsplit("_", 1))
        path = reverse(f"admin:{name}_change", args=[model._default_manager.first().pk])
        assert is_refused(client.post(path, {"path": "/elsewhere", "title": "gone"}))
        assert is_refused(client.post(path.replace("/change/", "/delete/"), {"post": "yes"}))

    rows.workspace.refresh_from_db()
    assert (Event.objects.count(), Session.objects.values().get(), rows.workspace.path) == before


def test_what_a_person_may_not_do_is_not_shown_to_them(rows: Rows) -> None:
    shown = browser("reviewer").get("/admin/").content.decode()

    assert reverse("admin:evolution_evolutionrun_changelist") in shown
    assert reverse("admin:auth_user_changelist") not in shown
    assert reverse("admin:auth_user_changelist") in browser("administrator").get("/admin/").content.decode()


def test_the_ready_groups_hold_what_they_promise() -> None:
    held = {
        group.name: set(group.permissions.values_list("content_type__app_label", "codename"))
        for group in Group.objects.all()
    }

    assert held["Reviewers"] == {("workspaces", name) for name in ("view", "review", "rollback")}
    assert held["Operators"] == {
        ("workspaces", name)
        for name in ("view", "review", "rollback", "author", "chat", "use_full_access", "change_settings")
    }


def test_each_permission_is_there_once() -> None:
    codenames = list(
        Permission.objects.filter(content_type__app_label="workspaces").values_list("codename", flat=True)
    )

    assert sorted(codenames) == sorted(set(codenames))
    assert {"view", "change_settings"} <= set(codenames)
