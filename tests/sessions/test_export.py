"""``halo session export`` and ``delete``: whole, also the archived parts; deleted for good only when asked to."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from core.db.models import Event
from sessions_app import lease
from sessions_app.create import create_session
from sessions_app.delete_session import delete_session, what_goes
from sessions_app.errors import SessionRefused
from sessions_app.export_session import _fenced, exported
from sessions_app.import_session import import_session
from sessions_app.importers import parse
from sessions_app.logs import SessionLog, read_session
from sessions_app.logs import records as make
from sessions_app.models import QueuedMessage, Session
from sessions_app.places import log_folder, log_leaf
from tests.sessions.conftest import NOW
from tests.sessions.conversations import talked
from tests.sessions.test_import_lists import ANTHROPIC, as_array
from workspaces.models import Workspace


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("session", *words, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_markdown_holds_everything_that_is_shown(session: Session) -> None:
    talked(session, 3).archive(over=0)
    text = run("export", session.pk)
    assert text.startswith(f"# {session.pk}\n")
    places = [text.index(f"{kind} {number}") for number in range(3) for kind in ("question", "answer")]
    assert places == sorted(places)


def test_a_fence_in_a_result_does_not_end_the_block(session: Session) -> None:
    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    result = {"text": "```\n# out of it\n````", "is_error": False}
    block = {"type": "tool_call", "call_id": "c", "tool": "ls`\n#", "arguments": {}, "result": result}
    log.append(ui=[make.add(make.assistant_row(row_id="a", at="", blocks=[block]))])
    text = exported(session, format="md")
    assert "`````\n```\n# out of it\n````\n`````" in text
    assert "`ls` #`" in text


def test_the_fence_is_found_at_once_whatever_the_length() -> None:
    """Tried one character at a time, this took minutes."""
    assert next(_fenced("a" + "`" * 2_000_000 + "b")) == "`" * 2_000_001
    assert next(_fenced("`` ` no fence in it")) == "```"


def test_what_a_stranger_wrote_into_the_log_spoils_no_export(session: Session) -> None:
    deep: Any = "end"
    for _ in range(700):
        deep = [deep]
    log = talked(session, 1)
    image = {"kind": "binary", "media_type": "image/png", "data": "not base64!"}
    said = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [image, "look"]}]}
    log.append(raw=[make.message(said)])
    row = make.user_row(row_id="odd", at="", stamp="", text="look") | {"images": 5, "more": deep}
    log.append(ui=[make.add(row)])
    for format in ("md", "json"):
        assert "look" in exported(session, format=format)
    assert "[image, not readable]" in exported(session, format="json")
    assert "look" in run("show", session.pk) and "look" in run("show", session.pk, "--json")


def test_json_is_imported_again_as_the_same_conversation(workspace: Workspace) -> None:
    first = import_session(
        data=as_array(ANTHROPIC), workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW
    )
    text = run("export", first.session.pk, "--format", "json")
    assert json.loads(text)["session"]["id"] == first.session.pk
    again = parse(text.encode())
    _, raw = read_session(log_folder(first.session), log_leaf(first.session))
    assert [stripped(message) for message in again.messages] == [stripped(m) for m in raw.messages]
    assert again.title == first.session.title


def test_json_without_calls_is_imported_again_too(session: Session) -> None:
    talked(session, 2)
    _, raw = read_session(log_folder(session), log_leaf(session))
    again = parse(exported(session, format="json").encode())
    assert [stripped(message) for message in again.messages] == [stripped(m) for m in raw.messages]


def stripped(message: dict[str, Any]) -> dict[str, Any]:
    parts = [{k: v for k, v in part.items() if k != "timestamp"} for part in message["parts"]]
    return {"kind": message["kind"], "parts": parts}


def test_a_file_that_is_there_is_not_written_over(session: Session, tmp_path: Path) -> None:
    talked(session, 1)
    path = tmp_path / "out.md"
    run("export", session.pk, "-o", str(path))
    path.write_text("mine")
    with pytest.raises(CommandError, match="is there already"):
        run("export", session.pk, "-o", str(path))
    assert path.read_text() == "mine"
    run("export", session.pk, "-o", str(path), "--force")
    assert "question 0" in path.read_text()


def a_tree(session: Session) -> Session:
    talked(session, 2).archive(over=0)
    child = create_session(
        workspace=session.workspace, agent_id="other", agent_name="Other", access_level="full", now=NOW
    )
    Session.objects.filter(pk=child.pk).delete()
    child.pk, child.parent = f"{session.pk}>child", session
    child.save(force_insert=True)
    talked(child, 1)
    QueuedMessage.objects.create(session=session, sender="person", text="x", stamp="s", created_at=NOW)
    return child


def test_without_a_yes_nothing_is_deleted_and_what_would_go_is_listed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = a_tree(session)
    before = sorted(path.name for path in log_folder(session).iterdir())
    said = io.StringIO()
    with pytest.raises(CommandError, match="--yes"):
        call_command("session", "delete", session.pk, stderr=said)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _prompt: "")
    with pytest.raises(CommandError, match="Nothing was deleted"):
        call_command("session", "delete", session.pk, stderr=said)
    assert child.pk in said.getvalue()
    assert ".arch.1.jsonl.gz" in said.getvalue()
    assert "1 message not answered yet" in said.getvalue()
    assert sorted(path.name for path in log_folder(session).iterdir()) == before
    assert Session.objects.count() == 2


def test_rows_and_files_of_the_whole_tree_go(session: Session) -> None:
    child = a_tree(session)
    assert json.loads(run("delete", session.pk, "--yes", "--json"))["deleted"] == [session.pk, child.pk]
    assert not Session.objects.exists()
    assert not QueuedMessage.objects.exists()
    assert list(log_folder(session).iterdir()) == []
    assert list(log_folder(child).iterdir()) == []
    assert Event.objects.filter(kind="session:changed", object_id=session.pk).last().payload == {  # type: ignore[union-attr]
        "change": "deleted"
    }


def test_what_was_begun_just_before_goes_as_well(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire = lease.acquire

    def late(root_id: str) -> lease.Lease:
        a_tree(session)
        return acquire(root_id)

    monkeypatch.setattr(lease, "acquire", late)
    gone = delete_session(session=session, now=NOW)
    assert [row.pk for row in gone.sessions] == [session.pk, f"{session.pk}>child"]
    assert not Session.objects.exists()
    assert list(log_folder(session).iterdir()) == []


def test_refused_while_it_runs_and_for_a_sub_session_alone(session: Session) -> None:
    child = a_tree(session)
    lease.acquire(session.pk)
    for one, code in ((session, "running"), (child, "not_root")):
        with pytest.raises(SessionRefused) as refused:
            delete_session(session=one, now=NOW)
        assert refused.value.code == code
    assert Session.objects.count() == 2
    assert len(what_goes(session).files) == 5
    assert all(path.exists() for path in what_goes(session).files)


@pytest.mark.parametrize(
    ("output", "said"),
    [("gone/talk.md", "gone is not a folder; nothing was written"), (".", "is a folder; a file is wanted")],
)
def test_an_export_into_no_file_says_so_in_words(
    session: Session, tmp_path: Path, output: str, said: str
) -> None:
    with pytest.raises(CommandError) as refused:
        run("export", session.pk, "--force", "-o", str(tmp_path / output))
    assert said in str(refused.value)
    assert list(tmp_path.glob("gone*")) == []


def test_an_import_of_no_file_names_it_without_the_systems_number(session: Session, tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "gone.jsonl", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(CommandError) as refused:
            run("import", str(path), "-w", session.workspace.path)
        assert str(refused.value) == f"{path}: {reason}"


def test_one_exchange_is_not_told_as_several(session: Session) -> None:
    for number, words in ((0, "0 exchanges"), (1, "1 exchange"), (2, "2 exchanges")):
        Session.objects.filter(pk=session.pk).update(exchange_count=number)
        assert run("show", session.pk).splitlines()[1].endswith(f", {words}")
