"""Claude Code session files become sessions: whole, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.processes import ProcessIdentity
from sessions_app.freeze import frozen_history
from sessions_app.import_session import import_session
from sessions_app.importers import ImportFailed, parse
from sessions_app.importers.lock import ImportLockHeld, conversion_lock
from sessions_app.logs import read_session
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from tests.sessions.conftest import NOW
from workspaces.models import Workspace

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Script:
    """Writes lines as the program does: each follows the one before unless told otherwise."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None

    def add(self, kind: str, content: Any = None, *, parent: str | None = None, **more: Any) -> str:
        uuid = f"u{len(self.lines)}"
        line: dict[str, Any] = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": parent or self.last,
            "sessionId": "s",
            "isSidechain": False,
            "timestamp": f"2026-01-31T09:30:{len(self.lines) % 60:02d}.000Z",
        }
        if content is not None:
            line["message"] = {"role": kind, "content": content}
        if kind == "assistant":
            line["message"].update(id=more.pop("reply", uuid), model="claude-x")
        line.update(more)
        self.lines.append(line)
        self.last = uuid
        return uuid

    def raw(self, value: dict[str, Any]) -> None:
        self.lines.append(value)

    def data(self) -> bytes:
        return "".join(json.dumps(line) + "\n" for line in self.lines).encode()


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def call(identifier: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": identifier, "name": "Bash", "input": {"command": "ls"}}]


def result(identifier: str, words: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identifier, "content": words, **more}]


def a_session() -> Script:
    script = Script()
    script.raw({"type": "summary", "summary": "Fixing things", "leafUuid": "x"})
    script.add("user", "<ide_opened_file>x.py</ide_opened_file>\nWhy does it fail?")
    script.add("assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}], reply="r1")
    script.add("assistant", text("Let me look."), reply="r1")
    first = script.add("assistant", call("t1"), reply="r1")
    second = script.add("assistant", call("t2"), reply="r1")
    script.add("user", result("t1", "a.txt"), parent=first)
    script.add("user", result("t2", [{"type": "text", "text": "bad"}], is_error=True), parent=second)
    script.raw({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
    script.add("assistant", text("It fails because of a."))
    return script


def spoken(data: bytes) -> list[str]:
    return [
        f"{part['part_kind']}:{part.get('content') or part.get('tool_call_id')}"
        for message in parse(data).messages
        for part in message["parts"]
    ]


def test_calls_and_results_of_one_reply_come_together() -> None:
    imported = parse(a_session().data())
    assert [message["kind"] for message in imported.messages] == [
        "request",
        "response",
        "request",
        "response",
    ]
    assert spoken(a_session().data())[1:] == [
        "thinking:hm",
        "text:Let me look.",
        "tool-call:t1",
        "tool-call:t2",
        "tool-return:a.txt",
        "tool-return:bad",
        "text:It fails because of a.",
    ]
    assert imported.title == "Why does it fail?"
    blocks = imported.rows[1]["blocks"]
    assert [block["result"]["is_error"] for block in blocks if block["type"] == "tool_call"] == [False, True]
    assert imported.left_out["line of type file-history-snapshot"] == 1


def test_what_was_imported_is_valid_for_the_model_library() -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    script = a_session()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    script.add("user", [*text("See this"), image])
    script.add("assistant", call("t3"))
    script.add("user", result("t3", [*text("shot"), image]))
    script.add("assistant", text("ok"))
    messages = ModelMessagesTypeAdapter.validate_python(parse(script.data()).messages)
    assert len(messages) == 8


def test_sidechains_meta_lines_and_abandoned_branches_are_left_out() -> None:
    script = Script()
    script.add("user", "first")
    fork = script.add("assistant", text("answer"))
    script.add("user", "said and taken back")
    script.add("assistant", text("never mind"))
    script.add("user", "said instead", parent=fork)
    script.add("user", "sub-agent prompt", isSidechain=True, parent="none")
    script.add("user", "<caveat>", isMeta=True, parent="u4")
    script.add("assistant", text("good"))
    said = " ".join(spoken(script.data()))
    assert "said instead" in said
    assert "good" in said
    for gone in ("taken back", "never mind", "sub-agent", "caveat"):
        assert gone not in said
    assert parse(script.data()).left_out["line of a sub-agent (sidechain)"] == 1


def test_a_compacted_session_keeps_what_was_said_before() -> None:
    script = Script()
    script.add("user", "old question")
    last = script.add("assistant", text("old answer"))
    script.add("system", subtype="compact_boundary", parentUuid=None, logicalParentUuid=last, content="c")
    script.add("user", "This session is being continued…", isCompactSummary=True)
    script.add("user", "new question")
    script.add("assistant", text("new answer"))
    said = spoken(script.data())
    assert len(said) == 4
    assert "old question" in said[0]
    rows = parse(script.data()).rows
    assert [row["role"] for row in rows] == ["user", "assistant", "system", "system", "user", "assistant"]


def test_an_open_call_is_closed_and_a_torn_last_line_left_out() -> None:
    script = Script()
    script.add("user", "go")
    script.add("assistant", call("t1"))
    data = script.data() + b'{"type":"user","uu'
    assert "cut short" in spoken(data)[-1]
    assert parse(data).left_out["unfinished last line"] == 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'{"type":"user"}\n{"sessionId": broken}\n{"type":"user"}\n', 2),
        (b'{"type":"user","sessionId":"s"}\n[1]\n', 2),
        (b'{"type":"summary","leafUuid":"x"}\n', 1),
        (b"not json at all\n", 1),
        (b"", 1),
    ],
)
def test_a_file_that_can_not_be_read_names_the_line_and_leaves_nothing(
    workspace: Workspace, data: bytes, line: int
) -> None:
    with pytest.raises(ImportFailed, match=f"^line {line}: "):
        import_session(data=data, workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW)
    assert not Session.objects.exists()
    assert [path.name for path in workspace.paths.sessions.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "value",
    [
        {"type": "user", "message": {"content": [None, 3, {"type": "text"}, {"type": "odd", "x": 1}]}},
        {"type": "assistant", "message": "nothing"},
        {"type": "user", "message": {"content": [{"type": "image", "source": {"data": "%%%"}}]}},
        {"type": 7, "uuid": ["x"]},
        {"type": "assistant", "timestamp": "yesterday", "message": {"content": [{"type": "tool_use"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": 5}]}},
        {"type": "assistant", "message": {"id": ["m"], "content": [{"type": ["text"]}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": {"a": 1}, "name": []}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": ["t"]}]}},
        {"type": "custom-title", "customTitle": ["t"], "isSidechain": []},
    ],
)
def test_odd_lines_are_no_reason_to_fail(value: dict[str, Any]) -> None:
    script = a_session()
    script.raw({"uuid": "odd", "parentUuid": script.last, "sessionId": "s", **value})
    script.add("user", "still here?", parent="odd")
    assert "still here?" in spoken(script.data())[-1]


@pytest.mark.parametrize("data", [b"", b"\n \r\n"])
def test_an_empty_file_is_called_that(data: bytes) -> None:
    with pytest.raises(ImportFailed, match="the file is empty"):
        parse(data)


def test_the_session_carries_outside_data_and_both_logs_agree(workspace: Workspace) -> None:
    data = a_session().data()
    outcome = import_session(data=data, workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW)
    session = Session.objects.get(pk=outcome.session.pk)
    assert session.outside_data_at == NOW
    assert session.title == "Why does it fail?"
    ui, raw = read_session(log_folder(session), log_leaf(session))
    assert len(raw.messages) == 4
    assert frozen_history(session) == raw.messages
    assert [row["role"] for row in ui.rows] == ["user", "assistant", "assistant", "system"]
    assert "file-history-snapshot" in ui.rows[-1]["text"]
    assert not ui.damages

    again = import_session(data=data, workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW)
    assert (again.created, again.session.pk) == (False, session.pk)
    assert Session.objects.count() == 1


def test_thousands_of_lines_keep_their_order(workspace: Workspace) -> None:
    script = Script()
    for number in range(1500):
        script.add("user", f"question {number}")
        script.add("assistant", call(f"t{number}"))
        script.add("user", result(f"t{number}", f"result {number}"))
        script.add("assistant", text(f"answer {number}"))
    outcome = import_session(
        data=script.data(), workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW
    )
    assert (outcome.messages, outcome.exchanges) == (6000, 1500)
    raw = read_session(log_folder(outcome.session), log_leaf(outcome.session))[1]
    assert raw.messages[-1]["parts"][0]["content"] == "answer 1499"


def test_a_live_converter_is_waited_for_and_a_dead_one_succeeded(tmp_path: Path) -> None:
    path = tmp_path / "x.importing"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = ProcessIdentity.of(child.pid)
        assert owner is not None
        path.write_text(json.dumps(owner.to_json()))
        with pytest.raises(ImportLockHeld), conversion_lock(path, wait_sec=0.1):
            pass
        assert path.exists()
        child.kill()
    with conversion_lock(path, wait_sec=0.1):
        assert path.exists()
    assert not path.exists()


def test_an_empty_lock_and_one_with_our_reused_pid_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "x.importing"
    path.touch()
    os.utime(path, (4_000_000_000, 4_000_000_000))
    with pytest.raises(ImportLockHeld), conversion_lock(path, wait_sec=0.05):
        pass
    os.utime(path, (1, 1))
    with conversion_lock(path, wait_sec=0.05):
        pass
    me = ProcessIdentity.current()
    path.write_text(json.dumps({**me.to_json(), "start_time": me.start_time - 5}))
    with conversion_lock(path, wait_sec=0.05):
        pass


def test_a_line_nested_too_deep_is_named_and_nothing_is_imported() -> None:
    deep = '{"type":"user","sessionId":"s","uuid":"u","message":{"content":' + "[" * 300 + "]" * 300 + "}}"
    with pytest.raises(ImportFailed, match="nested deeper than 64"):
        parse(f"{deep}\n{deep}\n".encode())


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-14:00"])
def test_a_time_at_the_end_of_all_times_is_none(time: str) -> None:
    lines = [
        {"type": "user", "sessionId": "s", "timestamp": time, "message": {"role": "user", "content": words}}
        for words in ("one", "two")
    ]
    rows = parse("\n".join(map(json.dumps, lines)).encode()).rows
    assert [row["stamp"] for row in rows] == ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z"]
