from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth import get_user_model

from sessions_app import commands
from sessions_app.commands import CommandContext, CommandResult, Needs, Place
from sessions_app.models import Session
from tests.sessions.conftest import NOW


@pytest.fixture
def probe() -> Iterator[list[str]]:
    calls: list[str] = []

    def handler(context: CommandContext) -> CommandResult:
        calls.append(context.argument)
        return CommandResult("done")

    commands.register(
        "probe", handler, needs=Needs(level="full", permission="workspaces.use_full_access", root=True)
    )
    yield calls
    commands._registry.pop("probe")


def test_a_command_gets_what_follows_its_name(session: Session, probe: list[str]) -> None:
    result = commands.run("/probe too verbose\nand late ", session=session, now=NOW)
    assert result.ok
    assert probe == ["too verbose\nand late"]


def test_paths_and_plain_text_are_no_commands() -> None:
    assert not commands.is_command("/etc/hosts is wrong")
    assert not commands.is_command("what does /evo do?")
    assert commands.is_command(" /evo ")


@pytest.mark.parametrize("level", ["workspace", "readonly"])
def test_a_session_below_the_level_is_refused_with_the_reason(
    session: Session, probe: list[str], level: str
) -> None:
    Session.objects.filter(pk=session.pk).update(access_level=level)
    result = commands.run("/probe", session=session, now=NOW)
    assert not result.ok
    assert f"needs access level full; this session has {level}" in result.text
    assert probe == []


def test_a_sub_session_has_no_more_than_the_root_has_now(session: Session) -> None:
    """A person lowered the root: the tree goes down with it, whatever the sub-session's own row says."""
    child = Session.objects.create(
        id=f"{session.pk}>child",
        workspace=session.workspace,
        parent=session,
        agent_id="helper",
        agent_name="Helper",
        access_level="full",
        created_at=NOW,
        last_activity_at=NOW,
    )
    calls: list[str] = []

    def handler(context: CommandContext) -> CommandResult:
        calls.append(context.argument)
        return CommandResult("done")

    commands.register("probe", handler, needs=Needs(level="full"))
    try:
        assert commands.run("/probe", session=child, now=NOW).ok
        Session.objects.filter(pk=session.pk).update(access_level="workspace")
        refused = commands.run("/probe", session=child, now=NOW)
    finally:
        commands._registry.pop("probe")
    assert not refused.ok and "this session has workspace" in refused.text
    assert calls == [""]
    assert "access workspace," in commands.run("/session info", session=child, now=NOW).text


def test_a_user_without_the_permission_is_refused(session: Session, probe: list[str]) -> None:
    user = get_user_model().objects.create_user("ann")
    result = commands.run("/probe", session=session, user=user, now=NOW)
    assert (result.ok, probe) == (False, [])
    assert "workspaces.use_full_access" in result.text


def test_an_unknown_command_says_where_to_look(session: Session) -> None:
    result = commands.run("/evolve", session=session, now=NOW)
    assert not result.ok
    assert "/help" in result.text


def test_new_keeps_the_working_directory_and_checks_it_again(session: Session) -> None:
    folder = session.workspace.paths.root / "docs"
    folder.mkdir()
    session.working_dir = "docs"
    session.save()
    made = Session.objects.get(pk=commands.run("/new", session=session, now=NOW).session_id)
    assert (made.working_dir, made.agent_id, made.access_level) == ("docs", "helper", "full")

    folder.rmdir()
    refused = commands.run("/new", session=session, now=NOW)
    assert not refused.ok
    assert Session.objects.count() == 2


def test_new_makes_no_session_of_a_level_that_its_user_may_not_use(session: Session) -> None:
    child = Session.objects.create(
        id=f"{session.pk}>child",
        parent=session,
        workspace=session.workspace,
        agent_id="helper",
        agent_name="Helper",
        access_level="workspace",
        created_at=NOW,
        last_activity_at=NOW,
    )
    refused = commands.run("/new", session=child, may=lambda name: name == "workspaces.chat", now=NOW)

    assert not refused.ok
    assert "workspaces.use_full_access" in refused.text
    assert Session.objects.count() == 2


def test_stop_info_list_and_help(session: Session) -> None:
    assert not commands.run("/stop", session=session, now=NOW).ok
    assert commands.run("/stop", session=session, now=NOW, place=Place(stop=lambda: True)).ok
    assert session.pk in commands.run("/session info", session=session, now=NOW).text
    assert session.pk in commands.run("/session list", session=session, now=NOW).text
    assert "/session info|list" in commands.run("/help", session=session, now=NOW).text


def test_interrupt_context_and_output(session: Session) -> None:
    assert not commands.run("/interrupt", session=session, now=NOW).ok
    assert commands.run("/interrupt", session=session, now=NOW, place=Place(interrupt=lambda: True)).ok
    session.context_tokens, session.output = 1234, "The last answer."
    assert "1234 tokens" in commands.run("/session context", session=session, now=NOW).text
    assert commands.run("/session output", session=session, now=NOW).text == "The last answer."
    unknown = commands.run("/session nonsense", session=session, now=NOW)
    assert not unknown.ok and "info, list, context, output or authoring" in unknown.text


def test_compact_says_so_when_there_is_nothing_and_where_it_can_not_be_done(session: Session) -> None:
    asked: list[str] = []
    place = Place(compact=lambda: (asked.append("yes"), CommandResult("Compacting."))[1])
    assert not commands.run("/compact", session=session, now=NOW).ok
    nothing = commands.run("/compact", session=session, now=NOW, place=place)
    assert (nothing.ok, nothing.text, asked) == (False, "There is nothing to compact yet.", [])
