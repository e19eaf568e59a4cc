"""Slash commands of skills: expanded into a message, within the session's level."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from sessions_app import commands
from sessions_app.models import QueuedMessage, Session
from tests.sessions.conftest import NOW
from tests.sessions.models_in_tests import Script
from workspaces.models import Workspace

REVIEW = """---
name: review
description: Reviews a change.
command: review
verbs:
  - {name: look, desc: Only look}
  - {name: merge, desc: Merge it, requiresAccess: full}
---
Review $1 with care. All: $ARGUMENTS. Missing: $3.
"""


@pytest.fixture
def skills(workspace: Workspace, agent: Path) -> Path:
    (agent / "agent.yaml").write_text("name: Helper\nskills: [review, locked, hidden, help, broken]\n")
    folder = workspace.paths.halo / "skills"
    texts = {
        "review": REVIEW,
        "locked": "---\nname: locked\ndescription: D.\ncommand: locked\nrequiresAccess: full\n---\nBody.\n",
        "hidden": "---\nname: hidden\ndescription: D.\ncommand: hidden\nuser-invocable: false\n---\nBody.\n",
        "help": "---\nname: help\ndescription: D.\ncommand: help\n---\nMine.\n",
        "unlisted": "---\nname: unlisted\ndescription: D.\ncommand: unlisted\n---\nBody.\n",
        "broken": "---\nname: broken\ndescription: D.\ncommand: broken\nverbs: 3\n---\nBody.\n",
    }
    for name, text in texts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(text)
    return folder


def run(text: str, session: Session) -> commands.CommandResult:
    return commands.run(text, session=session, now=NOW)


def test_a_command_becomes_a_message_with_its_arguments(session: Session, skills: Path) -> None:
    done = run("/review main.py twice", session)
    assert done.ok and done.text == ""
    assert done.send.startswith(
        "/review main.py twice\n\n[The skill review, from .halo/skills/review/SKILL.md]"
    )
    assert done.send.endswith("Review main.py with care. All: main.py twice. Missing: .")
    assert not QueuedMessage.objects.exists(), "whoever ran it accepts the message"


@pytest.mark.parametrize("level", ["workspace", "readonly"])
@pytest.mark.parametrize("text", ["/locked", "/review merge it"])
def test_a_level_that_is_too_low_is_refused_with_the_reason(
    session: Session, skills: Path, level: str, text: str
) -> None:
    Session.objects.filter(pk=session.pk).update(access_level=level)
    refused = run(text, session)
    assert (refused.ok, refused.send) == (False, "")
    assert f"needs a session at level full; this one has {level}" in refused.text
    assert run("/review look at it", session).ok


@pytest.mark.parametrize("text", ["/hidden", "/unlisted", "/nothing"])
def test_what_is_no_command_here(session: Session, skills: Path, text: str) -> None:
    refused = run(text, session)
    assert not refused.ok and "/help lists" in refused.text


def test_a_broken_skill_says_what_is_wrong(session: Session, skills: Path) -> None:
    refused = run("/broken", session)
    assert not refused.ok and "until its file is mended" in refused.text


def test_help_lists_them_and_a_built_in_name_is_not_taken_over(session: Session, skills: Path) -> None:
    told = run("/help", session).text
    assert "/review look|merge: Reviews a change." in told
    assert "Mine." not in told and told.count("/help") == 1


def test_a_skill_that_can_not_be_read_spoils_no_other_command(session: Session, skills: Path) -> None:
    (skills / "review" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    assert run("/session info", session).ok
    assert not run("/review", session).ok


@pytest.mark.django_db(transaction=True)
def test_in_the_terminal_the_agent_answers_it(
    workspace: Workspace, skills: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Script("Reviewed.").install(monkeypatch)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    call_command("chat", "/review main.py", workspace=workspace.path, agent="helper")
    assert capsys.readouterr().out == "Reviewed.\n"
    assert "Review main.py with care." in str(script.seen[0][-1])
    assert Session.objects.get().title.startswith("/review main.py")
