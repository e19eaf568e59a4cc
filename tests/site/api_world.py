"""People at the REST API: who they are, how they come in, and what they find."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.http import HttpResponse
from django.test import Client

from core import clock
from core.db.api_tokens import SCOPES, issue
from core.processes import host_name
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from halo_site.api import document
from sessions_app.create import create_session
from sessions_app.models import Session
from tests.evolution.landings import land, scenario_of
from tests.evolution.rows import Rows, make_user
from tests.sessions.conversations import stamp_of, with_an_archive
from workspaces.models import Workspace

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PEOPLE: dict[str, tuple[str, ...]] = {
    "plain": (),
    "chatter": ("view", "chat"),
    "reviewer": ("view", "review", "rollback"),
    "operator": ("view", "review", "rollback", "author", "chat", "use_full_access", "change_settings"),
}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    scope: str
    permission: str
    at_full: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path.removeprefix('/api')}"


def operations() -> list[Operation]:
    """Every operation of the document."""
    return [
        Operation(
            method.upper(),
            path,
            found["x-scope"],
            found["x-permission"],
            found.get("x-permission-at-full-access", ""),
        )
        for path, methods in document()["paths"].items()
        for method, found in methods.items()
    ]


@dataclass(frozen=True)
class World:
    """One row of each kind, at a place where every decision has something to decide on."""

    rows: Rows
    session: Session
    in_review: EvolutionRun
    pending: EvolutionRun
    waiting_apply: EvolutionApply
    applied: EvolutionApply
    scenario: RegressionScenario

    @classmethod
    def make(cls, rows: Rows) -> World:
        applied = land(rows)
        write_agent(rows.workspace)
        session = create_session(
            workspace=rows.workspace, agent_id="helper", agent_name="Helper", access_level="full", now=NOW
        )
        with_an_archive(session)
        return cls(
            rows, session, rows.in_review(), rows.pending(), rows.approved(), applied, scenario_of(applied)
        )

    def request_of(self, operation: Operation) -> tuple[str, Any]:
        """Path and body of a request that fits the document; KeyError for an operation that isn't known."""
        run, apply = f"run-{self.in_review.pk}", f"apply-{self.applied.pk}"
        seen = {"attempt": self.in_review.attempts}
        requests: dict[str, tuple[str, Any]] = {
            "GET /workspaces": ("/workspaces", None),
            "GET /sessions": ("/sessions", None),
            "GET /sessions/{session_id}": (f"/sessions/{self.session.pk}", None),
            "GET /sessions/{session_id}/log": (f"/sessions/{self.session.pk}/log", None),
            "POST /sessions": ("/sessions", {"workspace": self.session.workspace_id, "agent": "helper"}),
            "POST /sessions/{session_id}/messages": (
                f"/sessions/{self.session.pk}/messages",
                {"clientId": "c1", "text": "hello"},
            ),
            "POST /sessions/{session_id}/stop": (f"/sessions/{self.session.pk}/stop", None),
            "POST /sessions/{session_id}/interrupt": (f"/sessions/{self.session.pk}/interrupt", None),
            "DELETE /sessions/{session_id}/exchanges/{stamp}": (
                f"/sessions/{self.session.pk}/exchanges/{stamp_of(2)}",
                None,
            ),
            "GET /sessions/{session_id}/archives/{number}": (f"/sessions/{self.session.pk}/archives/1", None),
            "GET /evolution/runs": ("/evolution/runs", None),
            "POST /evolution/runs": ("/evolution/runs", {"session": self.session.pk, "hint": "shorter"}),
            "GET /evolution/runs/{run_id}": (f"/evolution/runs/{run}", None),
            "DELETE /evolution/runs/{run_id}": (f"/evolution/runs/{run}", None),
            "POST /evolution/approve": ("/evolution/approve", {"runs": [{"id": run, **seen}]}),
            "POST /evolution/runs/{run_id}/approve": (f"/evolution/runs/{run}/approve", seen),
            "POST /evolution/runs/{run_id}/reject": (
                f"/evolution/runs/{run}/reject",
                {**seen, "reason": "no"},
            ),
            "POST /evolution/runs/{run_id}/retry": (f"/evolution/runs/{run}/retry", {**seen, "hint": None}),
            "POST /evolution/runs/{run_id}/cancel": (f"/evolution/runs/run-{self.pending.pk}/cancel", None),
            "GET /evolution/applies": ("/evolution/applies", None),
            "GET /evolution/applies/{apply_id}": (f"/evolution/applies/{apply}", None),
            "POST /evolution/applies/{apply_id}/cancel": (
                f"/evolution/applies/apply-{self.waiting_apply.pk}/cancel",
                None,
            ),
            "POST /evolution/applies/{apply_id}/try-again": (f"/evolution/applies/{apply}/try-again", None),
            "GET /evolution/applies/{apply_id}/rollback": (f"/evolution/applies/{apply}/rollback", None),
            "POST /evolution/applies/{apply_id}/rollback": (
                f"/evolution/applies/{apply}/rollback",
                {"attempt": self.applied.attempts},
            ),
            "GET /evolution/scenarios": ("/evolution/scenarios", None),
            "GET /evolution/scenarios/{scenario_id}": (f"/evolution/scenarios/{self.scenario}", None),
            "POST /evolution/scenarios/{scenario_id}/retire": (
                f"/evolution/scenarios/{self.scenario}/retire",
                {"reason": "prices moved"},
            ),
            "POST /evolution/scenarios/{scenario_id}/restore": (
                f"/evolution/scenarios/{self.scenario}/restore",
                None,
            ),
            "GET /settings": ("/settings", None),
            "PUT /settings": ("/settings", {"values": {"general.evolution.control_run": False}}),
            "GET /events": ("/events?since=0", None),
        }
        path, body = requests[operation.name]
        return f"/api{path}", body


def write_agent(workspace: Workspace) -> None:
    """The agent ``helper``."""
    folder = workspace.paths.halo / "agents" / "helper"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("name: Helper\n")
    (folder / "AGENT.md").write_text("You help.\n")


def person(name: str) -> User:
    kind = ContentType.objects.get(app_label="workspaces", model="workspace")
    for codename in PEOPLE[name]:
        Permission.objects.get_or_create(content_type=kind, codename=codename, defaults={"name": codename})
    return make_user(name, *PEOPLE[name])


def token_for(user: User, *scopes: str) -> str:
    return issue(user=user, name="test", scopes=scopes or tuple(SCOPES), days=1, now=clock.now()).secret


def call(client: Client, method: str, path: str, body: Any = None, **headers: str) -> HttpResponse:
    data = b"" if body is None else json.dumps(body).encode()
    answer: HttpResponse = client.generic(  # type: ignore[assignment]
        method, path, data, content_type="application/json", headers=headers
    )
    return answer


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def logged_in(user: User) -> tuple[Client, dict[str, str]]:
    """A browser's client that CSRF is checked for, and the header that satisfies it."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    token = "a" * 32
    client.cookies["csrftoken"] = token
    return client, {"X-CSRFToken": token}


def elsewhere() -> Workspace:
    """A further workspace, which no folder belongs to."""
    return Workspace.objects.create(path="/nowhere/else", host=host_name(), created_at=NOW)
