"""Hostile text in every column of every row, on every page: shown as text, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.test import Client

from core import clock
from core.db.api_tokens import issue
from core.db.models import record_event
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from sessions_app import queue
from sessions_app.create import create_session
from sessions_app.models import Session
from tests.evolution.landings import land
from tests.evolution.rows import Rows
from tests.site.people import person
from tests.site.test_hostile_pages import MARK, Page
from tests.site.test_permissions import addresses

pytestmark = pytest.mark.django_db

OURS = {"core", "workspaces", "sessions_app", "evolution"}
FOREIGN = {"auth.User", "auth.Group", "admin.LogEntry"}
ADDRESSES = {"workspaces.Workspace.path", "workspaces.Workspace.host", "evolution.RegressionScenario.run_id"}
ADDRESSES |= {
    "evolution.RegressionScenario.apply_id",
    "admin.LogEntry.object_id",
    "sessions_app.Session.working_dir",
}
"""Rows and folders are found by these; a workspace's folder has a hostile name."""
SECRETS = {"core.ApiToken.digest", "auth.User.password"}
READ = {
    *(
        f"evolution.EvolutionRun.{name}"
        for name in ("user_hint", "agent_id", "failure_reason", "skip_reason")
    ),
    "evolution.EvolutionRun.decision_reason",
    *(f"evolution.EvolutionApply.{name}" for name in ("reviewer_hint", "failure_reason", "needs_person")),
    *(
        f"evolution.EvolutionApply.{name}"
        for name in ("drifted", "kept_dirs", "rollback_outcome", "progress")
    ),
    *(
        f"evolution.RegressionScenario.{name}"
        for name in ("target", "agent_id", "original_message", "answer")
    ),
    *(f"evolution.RegressionScenario.{name}" for name in ("test_message", "change", "baseline")),
    "evolution.RegressionScenario.retired_reason",
    *(f"sessions_app.Session.{name}" for name in ("agent_id", "agent_name", "title")),
    "sessions_app.QueuedMessage.text",
    *(f"core.Event.{name}" for name in ("kind", "object_id", "payload")),
    *(f"core.ApiToken.{name}" for name in ("name", "scopes")),
    *(f"auth.User.{name}" for name in ("username", "first_name", "last_name", "email")),
    *("auth.Group.name", "admin.LogEntry.change_message"),
}
"""What people read somewhere."""


def _columns() -> dict[str, models.Field[Any, Any]]:
    """Those that hold free text, by ``app.Model.column``."""
    found = {}
    for model in apps.get_models():
        label = model._meta.label
        if model._meta.app_label not in OURS and label not in FOREIGN:
            continue
        for field in model._meta.concrete_fields:
            is_text = isinstance(field, models.CharField | models.TextField | models.JSONField)
            if (
                is_text
                and not field.primary_key
                and not field.choices
                and f"{label}.{field.name}" not in ADDRESSES
            ):
                found[f"{label}.{field.name}"] = field
    return found


def _hostile(number: int, field: models.Field[Any, Any]) -> Any:
    mark = f"{MARK}{number}e"
    text = (
        f"\"'><b x-init='{mark}()'><script>{mark}()</script><img src=//{mark}.example onerror={mark}()>"
        f"</textarea></title>{{{{ {mark} }}}}\u202e"
    )
    if not isinstance(field, models.JSONField):
        return text[: field.max_length] if field.max_length else text
    if field.name == "progress":
        return {"done": text, "total": text}
    if field.default is list:
        return [text]
    return {text: [text], "to": text, "change": text, "why": text}


@pytest.fixture
def columns(tmp_path: Path) -> dict[str, int]:
    """Rows of every kind, every text in them hostile; the number that stands in each column's text."""
    rows = Rows.make(tmp_path, name=f"ws<b x-init='{MARK}()'>")
    session = create_session(
        workspace=rows.workspace, agent_id="writer", agent_name="W", access_level="full", now=rows.now
    )
    Session.objects.create(
        id=f"{session.pk}>below",
        parent=session,
        workspace=rows.workspace,
        agent_id="writer",
        agent_name="W",
        access_level="full",
        created_at=rows.now,
        last_activity_at=rows.now,
    )
    queue.accept(session=session, text="waits", now=rows.now)
    rows.claimed()
    rows.in_review(source_session_id=session.pk)
    land(rows)
    rows.failed_apply()
    rows.syncing()
    for kind in ("evolution:progress", "session:changed", "settings:changed", "nobody:knows"):
        record_event(kind=kind, object_id="x", workspace_id=None, payload={}, now=clock.now())
    issue(user=person("reviewer"), name="t", scopes=["view"], days=1, now=clock.now())
    for model in apps.get_models():
        row = model._default_manager.first()
        if row is not None and model._meta.label != "admin.LogEntry":
            LogEntry.objects.create(
                user=person("administrator"),
                content_type=ContentType.objects.get_for_model(model),
                object_id=str(row.pk),
                object_repr="x",
                action_flag=CHANGE,
                change_message="x",
            )
    numbers = {}
    for number, (name, field) in enumerate(_columns().items(), 1):
        for row in field.model._default_manager.all():
            given = _hostile(number, field)
            if field.unique:
                given = f"{row.pk}{given}"[: field.max_length]
            field.model._default_manager.filter(pk=row.pk).update(**{field.name: given})
        numbers[name] = number
    EvolutionRun.objects.update(decided_by=rows.user, decided_at=rows.now)
    RegressionScenario.objects.update(retired_at=rows.now)
    EvolutionApply.objects.filter(status="syncing").update(needs_person=None)
    return numbers


def _pages() -> Iterator[tuple[str, str]]:
    client = Client()
    administrator = User.objects.get(is_superuser=True)
    client.force_login(administrator, backend="django.contrib.auth.backends.ModelBackend")
    for name, path in addresses():
        answer = client.get(path)
        assert answer.status_code < 500, (name, path)
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            yield name, answer.content.decode()


def test_no_column_does_anything_on_any_page_and_no_secret_is_on_one(
    columns: dict[str, int],
) -> None:
    shown: set[int] = set()
    count = 0
    for name, html in _pages():
        assert Page(html).acting == [], name
        shown |= {int(number) for number in re.findall(rf"{MARK}(\d+)e", html)}
        count += 1

    assert count > 40
    found = {name for name, number in columns.items() if number in shown}
    assert set(columns) >= SECRETS
    assert not SECRETS & found
    assert READ - found == set()
