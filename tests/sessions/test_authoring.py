"""A session opened for authoring: who may, for how long, what it opens, and where it stands written."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User

from agents import views
from agents.tools.context import ToolContext, ToolError
from agents.tools.file_edit import file_edit
from agents.tools.file_write import file_write
from agents.view import View
from core.db.models import Event
from core.paths import HaloHome
from sessions_app import commands
from sessions_app.create import create_session
from sessions_app.models import Session
from sessions_app.prepare import prepare
from tests.sessions.conftest import NOW


@pytest.fixture
def author(db: None) -> User:
    user = User.objects.create_user("ann")
    user.user_permissions.add(Permission.objects.get(codename="author"))
    return User.objects.get(pk=user.pk)


def run(text: str, session: Session, *, user: Any = None, now: Any = NOW) -> commands.CommandResult:
    return commands.run(text, session=session, user=user, now=now)


def test_it_is_open_for_an_hour_and_stands_written(session: Session, author: User) -> None:
    done = run("/session authoring", session, user=author)
    assert done.ok and "2026-01-31 10:30:00 UTC" in done.text
    session.refresh_from_db()
    assert session.authoring_until == NOW + timedelta(hours=1)
    assert "open for authoring until" in run("/session info", session).text
    assert "open for authoring" not in run("/session info", session, now=NOW + timedelta(minutes=61)).text
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (author, session.pk)
    assert "Opened for authoring until" in entry.change_message
    event = Event.objects.get(object_id=session.pk, payload__change="authoring_opened")
    assert event.payload["by"] == "ann"
    assert run("/session authoring off", session, user=author).ok
    session.refresh_from_db()
    assert session.authoring_until == NOW
    assert LogEntry.objects.count() == 2
    assert not run("/session authoring off", session, user=author).ok


def test_whoever_lacks_the_permission_changes_nothing(session: Session) -> None:
    user = User.objects.create_user("bob")
    refused = run("/session authoring", session, user=user)
    assert not refused.ok and "workspaces.author" in refused.text
    session.refresh_from_db()
    assert session.authoring_until is None
    assert not LogEntry.objects.exists()


def test_a_token_without_the_scope_does_not_open_it(session: Session, author: User) -> None:
    result = commands.run("/session authoring", session=session, user=author, may=lambda _p: False, now=NOW)
    assert not result.ok
    session.refresh_from_db()
    assert session.authoring_until is None


def test_one_session_of_a_workspace_at_a_time(session: Session) -> None:
    other = create_session(
        workspace=session.workspace, agent_id="helper", agent_name="H", access_level="full", now=NOW
    )
    assert run("/session authoring", session).ok
    refused = run("/session authoring", other)
    assert not refused.ok and session.pk in refused.text
    other.refresh_from_db()
    assert other.authoring_until is None
    assert run("/session authoring", other, now=NOW + timedelta(minutes=61)).ok, "the hour is over"


@pytest.mark.parametrize("change", [{"access_level": "readonly"}, {"id": "root>child"}])
def test_sessions_that_can_not_be_opened(session: Session, change: dict[str, str]) -> None:
    for name, value in change.items():
        setattr(session, name, value)
    assert not run("/session authoring", session).ok
    assert not Session.objects.exclude(authoring_until=None).exists()


def test_the_next_turn_may_write_prompt_files_until_the_hour_is_over(
    session: Session, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = HaloHome(tmp_path / "home")
    closed = prepare(session, home=home)
    assert not closed.view.authoring() and "<authoring>" not in closed.system_prompt
    from core import clock

    run("/session authoring", session, now=clock.now())
    opened = prepare(session, home=home)
    assert opened.view.authoring() and "<authoring>" in opened.system_prompt
    session.authoring_until = clock.now() - timedelta(seconds=1)
    assert not prepare(session, home=home).view.authoring()
    late = clock.suspended_seconds() + 3_601
    monkeypatch.setattr("core.clock.suspended_seconds", lambda: late)
    assert not opened.view.authoring(), "also in the middle of a turn"


@pytest.mark.parametrize("level", ["full", "workspace"])
def test_what_authoring_opens_and_what_stays_closed(tmp_path: Path, level: str) -> None:
    root, home = tmp_path / "ws", tmp_path / "home"
    for name in ("agents/a", "evo", "sessions"):
        (root / ".halo" / name).mkdir(parents=True)
    (root / ".halo/INSTRUCTIONS.md").write_text("old\n")
    (root / ".halo/settings.yaml").write_text("{}\n")
    (root / "sub/.halo").mkdir(parents=True)
    (home / "global/agents").mkdir(parents=True)
    made = views.full_view(root, global_folder=home / "global")
    if level == "workspace":
        made = views.workspace_view(root, home / "global")

    def context(*, authoring: bool) -> ToolContext:
        values = {name: getattr(made, name) for name in View.__dataclass_fields__}
        return ToolContext(view=View(**{**values, "authoring": lambda: authoring}))

    for path in (".halo/INSTRUCTIONS.md", ".halo/agents/new/AGENT.md", ".halo/USER.md"):
        with pytest.raises(ToolError, match="/evo"):
            file_write(context(authoring=False), path, "new\n")
        file_write(context(authoring=True), path, "new\n")
        assert (root / path).read_text() == "new\n"
    file_edit(context(authoring=True), ".halo/INSTRUCTIONS.md", "new", "newer")
    assert (root / ".halo/INSTRUCTIONS.md").read_text() == "newer\n"
    shut = (
        ".halo/settings.yaml", ".halo/evo/x", ".halo/sessions/x", ".halo/other.md",
        "sub/.halo/INSTRUCTIONS.md", str(home / "global/agents/x"), ".halo/agents/../evo/y",
    )  # fmt: skip
    for path in shut:
        with pytest.raises(ToolError):
            file_write(context(authoring=True), path, "x")
    assert sorted(entry.name for entry in (root / ".halo/evo").iterdir()) == []
