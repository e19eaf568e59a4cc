"""``halo chat`` and ``halo session`` as a person runs them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents import events
from agents.turn import TurnOutcome
from core.db.models import Event
from core.texts import for_terminal
from sessions_app.logs import Row, SessionLog
from sessions_app.logs import records as make
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.start_chat import ChatRequest, chat_session
from sessions_app.terminal import _answer_in_log
from sessions_app.terminal_view import RichView
from tests.sessions.conftest import NOW
from tests.sessions.models_in_tests import Script
from workspaces.models import Workspace

threaded = pytest.mark.django_db(transaction=True)


class Input(io.TextIOWrapper):
    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()))


@threaded
def test_the_reply_alone_is_on_standard_output(
    workspace: Workspace,
    agent: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Script("The reply.", "And again.").install(monkeypatch)
    call_command("chat", "hello", workspace=workspace.path, agent="helper")
    assert capsys.readouterr() == ("The reply.\n", "")

    monkeypatch.setattr(sys, "stdin", Input("piped\nmessage"))
    call_command("chat", workspace=workspace.path, agent="helper")
    assert capsys.readouterr().out == "And again.\n"
    session = Session.objects.get()
    assert (session.exchange_count, session.access_level, session.title) == (2, "full", "hello")


def test_the_answer_of_a_command_is_shown_after_a_reply_that_streamed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = RichView()
    view.watch(events.AgentStart("helper"))
    view.watch(events.StreamDelta(1, "The reply."))
    view.watch(events.Complete("completed", "The reply.", 1))
    view.reply("The reply.")
    view.reply("Queued as run-1.")
    view.reply("Another process answered.")
    assert capsys.readouterr().out == "The reply.\nQueued as run-1.\nAnother process answered.\n"


@threaded
def test_a_turn_that_fails_says_why_on_standard_error(
    workspace: Workspace, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (agent / "agent.yaml").write_text("name: Helper\nmodel: {provider: openai}\n")
    with pytest.raises(SystemExit) as ended:
        call_command("chat", "hello", workspace=workspace.path, agent="helper")
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (1, "")
    assert "helper" in err
    assert "openai" in err


@threaded
def test_commands_act_at_once_and_need_no_model(
    workspace: Workspace, agent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("chat", "/session info", workspace=workspace.path, agent="helper")
    assert Session.objects.get().pk in capsys.readouterr().out
    with pytest.raises(SystemExit):
        call_command("chat", "/nonsense", workspace=workspace.path, agent="helper")
    assert "/help" in capsys.readouterr().err


def test_the_newest_session_goes_on_unless_a_new_one_is_asked_for(
    workspace: Workspace, agent: Path, tmp_path: Path
) -> None:
    from core.paths import HaloHome

    home = HaloHome(tmp_path / "home")
    first, is_new = chat_session(ChatRequest(workspace, "helper"), home=home, now=NOW)
    again, again_new = chat_session(ChatRequest(workspace, "helper"), home=home, now=NOW)
    assert (is_new, again_new, again.pk) == (True, False, first.pk)
    lower, _ = chat_session(ChatRequest(workspace, "helper", access="readonly"), home=home, now=NOW)
    assert (lower.pk, Session.objects.get().access_level) == (first.pk, "readonly")
    assert Event.objects.filter(object_id=first.pk, payload={"change": "set"}).count() == 1, "views are told"
    chat_session(ChatRequest(workspace, "helper", access="readonly"), home=home, now=NOW)
    assert Event.objects.filter(payload={"change": "set"}).count() == 1, "of a change alone"
    assert chat_session(ChatRequest(workspace, "helper", new=True), home=home, now=NOW)[1]
    Session.objects.update(outside_data_at=NOW)
    assert chat_session(ChatRequest(workspace, "helper"), home=home, now=NOW)[1], (
        "imports aren't gone on with"
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"agent": "nobody"}, "There is no agent 'nobody'"),
        ({"session": "zzz"}, "There is no session zzz"),
        ({"dir": "../elsewhere", "agent": "helper"}, "climbs out"),
        ({"dir": "missing", "agent": "helper"}, "no folder"),
        ({"as_user": "ghost"}, "no active user"),
        ({"workspace": "~nosuchuser/ws"}, "~nosuchuser/ws"),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_made(
    workspace: Workspace, agent: Path, options: dict[str, str], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        call_command("chat", "hello", **{"workspace": workspace.path, **options})
    assert not Session.objects.exists()


def spoken(row_id: str, text: str) -> Row:
    return make.user_row(row_id=row_id, at=row_id, stamp=row_id, text=text)


def answered(text: str, *, status: str = "done", tool: bool = False) -> Row:
    call = {"type": "tool_call", "call_id": "c", "tool": "glob", "arguments": {}}
    blocks = [{"type": "text", "text": text}, *([call] if tool else [])]
    return make.assistant_row(row_id=f"row {text}", at="", blocks=blocks, status=status)


def failed(text: str) -> Row:
    return make.system_row(row_id=f"row {text}", at="", kind="error", text=text)


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ([spoken("s1", "x"), answered("yes")], TurnOutcome("completed", "yes")),
        (
            [spoken("s1", "x"), answered("yes"), spoken("s2", "y"), answered("to y")],
            TurnOutcome("completed", "yes"),
        ),
        ([spoken("s1", "x"), answered("look", tool=True), answered("yes")], TurnOutcome("completed", "yes")),
        (
            [spoken("s1", "x"), answered("look", tool=True), spoken("s2", "y"), answered("to both")],
            TurnOutcome("completed", "to both"),
        ),
        ([spoken("s0", "w"), answered("to w"), spoken("s1", "x")], TurnOutcome("aborted", "")),
        ([spoken("s1", "x"), answered("half", status="interrupted")], TurnOutcome("aborted", "half")),
        ([spoken("s1", "x"), answered("half", status="failed")], TurnOutcome("failed", "half")),
        ([spoken("s1", "x"), failed("No key.")], TurnOutcome("failed", "", "No key.")),
        ([], TurnOutcome("aborted", "")),
    ],
)
def test_what_another_process_answered_is_told_as_what_it_was(
    session: Session, rows: list[Row], outcome: TurnOutcome
) -> None:
    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    log.append(ui=[make.add(row) for row in rows])
    assert _answer_in_log(session, "s1") == outcome


def test_a_models_text_can_not_steer_the_terminal() -> None:
    assert for_terminal("a\x1b[2Jb\x07\r\n\tc\x9b1m") == "a\\x1b[2Jb\\x07\n\tc\\x9b1m"


def test_list_show_and_import(
    workspace: Workspace, agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    lines = [
        {"type": "user", "sessionId": "s", "message": {"content": "hello"}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "hi"}]}},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    call_command("session", "import", str(file), workspace=workspace.path, agent="helper")
    identifier = Session.objects.get().pk
    assert identifier in capsys.readouterr().out
    call_command("session", "list", "--json")
    assert json.loads(capsys.readouterr().out)[0]["outside_data"] is True
    call_command("session", "show", identifier[:10])
    shown = capsys.readouterr().out
    assert "user: hello" in shown
    assert "assistant:\nhi" in shown

    file.write_text("{}\nbroken\n")
    with pytest.raises(CommandError, match=r"line 1.*Nothing was imported"):
        call_command("session", "import", str(file), workspace=workspace.path, agent="helper")
    assert Session.objects.count() == 1


def test_the_whole_way_in_processes_of_their_own(halo_home: Path, tmp_path: Path) -> None:
    """The shipped offline engine answers from the workspace's documents; nothing is set up beside it."""
    root = tmp_path / "ws"
    (root / ".halo" / "docs").mkdir(parents=True)
    (root / ".halo" / "docs" / "bolts.md").write_text("# Bolts\nThe torque of the M8 bolt is 25 Nm.\n")
    (root / ".halo" / "agents" / "helper").mkdir(parents=True)
    (root / ".halo" / "agents" / "helper" / "agent.yaml").write_text(
        "name: H\ntools: [file_read, glob, grep]\n"
    )

    def halo(*arguments: str, stdin: str = "") -> str:
        environment = {**os.environ, "HALO_HOME": str(halo_home)}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        done = subprocess.run(
            [sys.executable, "-m", "halo_site", *arguments],
            input=stdin,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    halo("migrate", "-v0")
    halo("workspace", "add", str(root))
    reply = halo("chat", "-w", str(root), "-a", "helper", stdin="What is the torque of the M8 bolt?")
    assert "25 Nm" in reply
    assert json.loads(halo("session", "list", "--json"))[0]["exchanges"] == 1
