"""The log pair: rules 1 to 6 of the session logs, seen by a reader."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from agents import events
from agents.history import PARTIAL_SHUTDOWN, summary_message
from sessions_app.logs import LeaseLostError, SessionLog, TurnRecorder, read_raw, read_session, read_ui
from sessions_app.logs import records as make

STAMP = "2026-01-31T09:30:00.123Z"


def user(text: str) -> events.Message:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": f"[{STAMP}] {text}"}]}


def reply(text: str) -> events.Message:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def say(log: SessionLog, name: str, message: events.Message) -> None:
    row = (
        make.user_row(row_id=name, at=STAMP, stamp=STAMP, text=name)
        if message["kind"] == "request"
        else make.assistant_row(row_id=name, at=STAMP, blocks=[{"type": "text", "text": name}])
    )
    log.append(ui=[make.add(row)], raw=[make.message(message, [name])])


def opened(folder: Path, epoch: int = 1) -> SessionLog:
    log = SessionLog(folder, "leaf", epoch=epoch)
    log.load()
    return log


def ids(folder: Path) -> list[str]:
    return [row["id"] for row in read_ui(folder / "leaf.ui.jsonl").rows]


def conversation(folder: Path) -> SessionLog:
    log = opened(folder)
    for number in range(3):
        say(log, f"u{number}", user(f"question {number}"))
        say(log, f"a{number}", reply(f"answer {number}"))
    return log


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    conversation(tmp_path)
    assert ids(tmp_path) == ["u0", "a0", "u1", "a1", "u2", "a2"]
    assert read_raw(tmp_path / "leaf.raw.jsonl")[3] == reply("answer 1")


def test_line_separators_and_lone_surrogates_are_text(tmp_path: Path) -> None:
    log = opened(tmp_path)
    text = "one\u2028two\x85three\r\nfour \ud800"
    say(log, "u", user(text))
    assert read_raw(tmp_path / "leaf.raw.jsonl") == [user(text)]


def test_a_torn_last_line_is_dropped_and_cut_by_the_next_append(tmp_path: Path) -> None:
    conversation(tmp_path)
    path = tmp_path / "leaf.ui.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"t":"add","row":{"id":"torn"')
    assert ids(tmp_path) == ["u0", "a0", "u1", "a1", "u2", "a2"]
    log = opened(tmp_path, epoch=2)
    assert path.read_bytes() == whole + b'{"t":"add","row":{"id":"torn"', "opening alone cuts nothing"
    say(log, "u3", user("more"))
    assert path.read_bytes().startswith(whole + b'{"seq":7')
    assert ids(tmp_path)[-1] == "u3"


@pytest.mark.parametrize(
    "junk",
    [
        b"\0" * 40,
        b'{"half": ',
        b"\xff\xfe",
        b"[1]",
        b'{"t":"add","e":"x"}',
        b"[" * 100_000,
        b'{"t":"add","row":' + b'{"a":' * 100_000,
        b'{"t":"add","seq":' + b"9" * 5_000 + b"}",
        b'{"t":"add","seq":' + b"9" * 20 + b',"row":{"id":"x","role":"system"}}',
        b'{"t":"add","seq":NaN}',
    ],
    ids=["NUL", "half", "no UTF-8", "list", "epoch", "deep", "deep rows", "huge", "large", "NaN"],
)
def test_damage_in_the_middle_of_the_ui_log_is_kept_aside_and_the_row_restored(
    tmp_path: Path, junk: bytes
) -> None:
    conversation(tmp_path)
    path = tmp_path / "leaf.ui.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[3] = junk
    path.write_bytes(b"\n".join(lines))
    before = path.read_bytes()

    seen = read_session(tmp_path, "leaf")
    assert path.read_bytes() == before, "a reader never writes"
    opened(tmp_path, epoch=2)
    after = read_session(tmp_path, "leaf")
    for ui in (seen[0], after[0]):
        kinds = [row["id"] if row["role"] != "system" else row["kind"] for row in ui.rows]
        assert sorted(kinds) == ["a0", "a1", "a2", "damage", "u0", "u1", "u2"]
        assert kinds.index("a1") == kinds.index("u2") - 1
    aside = (tmp_path / "leaf.damaged").read_text()
    assert '"log": "ui"' in aside
    size = path.stat().st_size
    opened(tmp_path, epoch=2)
    assert path.stat().st_size == size, "mending is done once"


def test_damage_in_the_raw_log_marks_the_rows_that_the_model_lost(tmp_path: Path) -> None:
    conversation(tmp_path)
    path = tmp_path / "leaf.raw.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"\0\0\0"
    path.write_bytes(b"\n".join(lines))
    opened(tmp_path, epoch=2)
    ui, raw = read_session(tmp_path, "leaf")
    assert [row["id"] for row in ui.rows if row.get("lost")] == ["a1"]
    assert any(row.get("kind") == "damage" for row in ui.rows)
    assert len(raw.messages) == 5
    log = opened(tmp_path, epoch=3)
    say(log, "u3", user("on"))
    assert len(read_raw(tmp_path / "leaf.raw.jsonl")) == 6


def compacted(log: SessionLog, kept: int, *, also: int = 0) -> None:
    """The first ``kept`` messages behind those that a summary takes in are kept, the last ``also`` go on in it."""
    _, raw = read_session(log.folder, log.leaf)
    recorder = TurnRecorder(log, raw.messages, raw.rows)
    cut = len(raw.messages) - kept - also
    parts = [part for message in raw.messages[cut + kept :] for part in message["parts"]]
    summary = summary_message("[summary] of it", of=cut, kept=kept, also=parts)
    messages = (summary, *raw.messages[cut : cut + kept])
    recorder.record(events.HistoryReplaced(messages, "compacted", compacted=True))


def damaged(log: SessionLog, line: int) -> list[str]:
    """The rows that count as lost to the model once this line of the raw log is damaged."""
    lines = log.raw_file.path.read_bytes().split(b"\n")
    lines[line] = b"\0\0\0"
    log.raw_file.path.write_bytes(b"\n".join(lines))
    seen = lost_rows(log.folder)
    for epoch in (log.epoch + 1, log.epoch + 2):
        opened(log.folder, epoch=epoch)
        assert lost_rows(log.folder) == seen, "a reader sees what the next writer writes down"
    return seen


def lost_rows(folder: Path) -> list[str]:
    return [row["id"] for row in read_session(folder, "leaf")[0].rows if row.get("lost")]


@pytest.mark.parametrize(("line", "lost"), [(0, ["u0", "a0", "u1"]), (1, ["a1"]), (2, ["u2"]), (3, ["a2"])])
def test_what_a_summary_stands_for_is_lost_with_the_summary_alone(
    tmp_path: Path, line: int, lost: list[str]
) -> None:
    log = conversation(tmp_path)
    compacted(log, 3)
    assert damaged(log, line) == lost


def test_the_first_message_behind_a_summary_that_kept_none_is_lost_alone(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    compacted(log, 3)
    compacted(log, 0)
    for name in ("u3", "u4"):
        say(log, name, user(name))
    assert damaged(log, 1) == ["u3"]


def test_what_is_lost_stands_ahead_of_a_message_that_goes_on_in_the_summary(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    say(log, "u3", user("question 3"))
    compacted(log, 2, also=1)
    assert read_session(tmp_path, "leaf")[1].rows == [("u3",), ("u2",), ("a2",)]
    say(log, "a3", reply("answer 3"))
    assert damaged(log, 1) == ["u2"]


def test_a_message_whose_row_was_not_written_gets_its_row_on_load(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    log.append(raw=[make.message(user("last words"), ["u3"])])
    opened(tmp_path, epoch=2)
    row = read_ui(tmp_path / "leaf.ui.jsonl").rows[-1]
    assert (row["id"], row["text"], row["stamp"]) == ("u3", "last words", STAMP)


def test_a_late_writer_is_told_and_its_rows_are_kept_in_a_note(tmp_path: Path) -> None:
    old = conversation(tmp_path)
    new = opened(tmp_path, epoch=2)
    say(new, "u-new", user("new"))
    with pytest.raises(LeaseLostError):
        say(old, "u-old", user("old words"))
    assert read_raw(tmp_path / "leaf.raw.jsonl")[-1] == user("new")
    note = read_ui(tmp_path / "leaf.ui.jsonl").rows[-1]
    assert note["kind"] == "late"
    assert "old words" in str(note["kept"])
    say(new, "a-new", reply("fine"))
    rows = read_ui(tmp_path / "leaf.ui.jsonl").rows
    assert [row["id"] for row in rows if row["role"] != "system"][-2:] == ["u-new", "a-new"]
    assert len([row for row in rows if row["role"] == "system"]) == 1
    assert "old words" in str(rows)


def test_a_strangers_rows_lose_to_the_holder_and_are_kept(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    with (tmp_path / "leaf.raw.jsonl").open("ab") as stream:
        stream.write(make.encode([{**make.message(user("stranger")), "n": 6, "e": 1}]))
    say(log, "u3", user("ours"))
    assert read_raw(tmp_path / "leaf.raw.jsonl")[6:] == [user("ours")]
    assert "stranger" in str([row for row in read_ui(tmp_path / "leaf.ui.jsonl").rows if row.get("kept")])


def test_between_turns_a_foreign_change_is_read(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    assert not log.changed()
    with (tmp_path / "leaf.raw.jsonl").open("ab") as stream:
        stream.write(make.encode([{**make.message(user("by hand")), "n": 6, "e": 1}]))
    assert log.changed()
    assert log.load()[1].messages[-1] == user("by hand")


def test_a_replaced_file_is_written_anew_from_the_turns_memory(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    history = read_raw(tmp_path / "leaf.raw.jsonl")
    recorder = TurnRecorder(log, history, [(str(n),) for n in range(6)])
    other = tmp_path / "other"
    other.write_bytes(make.encode([{**make.message(user("other")), "n": 0, "e": 1}]))
    other.replace(tmp_path / "leaf.raw.jsonl")
    history.append(reply("mine"))
    recorder.record(events.SavePoint(messages=(history[-1],)))
    assert read_raw(tmp_path / "leaf.raw.jsonl") == history
    assert "other" in str(read_ui(tmp_path / "leaf.ui.jsonl").rows[-1]["kept"])


def test_an_append_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = conversation(tmp_path)
    path = tmp_path / "leaf.raw.jsonl"
    before = path.read_bytes()

    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("core.atomic.write_all", full)
        with pytest.raises(OSError, match="No space"):
            say(log, "u3", user("x"))
    assert path.read_bytes() == before
    say(log, "u3", user("x"))
    assert len(read_raw(path)) == 7


def test_a_streamed_call_is_one_row_and_a_discarded_one_is_none(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    history = read_raw(tmp_path / "leaf.raw.jsonl")
    clock = iter(range(1000))
    recorder = TurnRecorder(log, history, [()] * 6, monotonic=lambda: float(next(clock)))
    recorder.record(events.StreamDelta(1, "bad "))
    recorder.record(events.StreamDelta(1, "start"))
    assert read_ui(log.ui_file.path).rows[-1]["blocks"] == [{"type": "text", "text": "bad start"}]
    recorder.record(events.CallDiscarded(1, "overload"))
    assert len(read_ui(log.ui_file.path).rows) == 6
    recorder.record(events.StreamDelta(1, "good"))
    seen = read_ui(log.ui_file.path).rows[-1]
    assert seen["status"] == "interrupted", "in flight shows as interrupted to whom reads it cold"
    recorder.record(events.Stream(1, "good"))
    history.append(reply("good"))
    recorder.record(events.SavePoint(messages=(history[-1],)))
    recorder.record(events.Complete("completed", "good", 1))
    view = read_ui(log.ui_file.path)
    assert view.open_rows == []
    assert view.rows[-1] == {
        "id": seen["id"],
        "role": "assistant",
        "at": seen["at"],
        "status": "done",
        "blocks": [{"type": "text", "text": "good"}],
    }


def test_a_killed_turn_shows_finished_results_and_interrupted_calls_in_order(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    history = read_raw(tmp_path / "leaf.raw.jsonl")
    recorder = TurnRecorder(log, history, [()] * 6)
    calls = {
        "kind": "response",
        "parts": [
            {"part_kind": "tool-call", "tool_name": "grep", "args": {}, "tool_call_id": name} for name in "ab"
        ],
    }
    for name in "ab":
        recorder.record(events.ToolCall(1, name, "grep", {}))
    history.append(calls)
    recorder.record(events.SavePoint(messages=(calls,)))
    result = {"part_kind": "tool-return", "tool_name": "grep", "content": "found", "tool_call_id": "b"}
    recorder.record(events.SavePoint(messages=({"kind": "request", "parts": [result]},)))
    view, raw = opened(tmp_path, epoch=2).load()
    blocks = view.rows[-1]["blocks"]
    assert [(block["call_id"], block["result"].get("interrupted", False)) for block in blocks] == [
        ("a", True),
        ("b", False),
    ]
    assert view.rows[-1]["status"] == "interrupted"
    assert len(raw.messages) == 8


@pytest.mark.parametrize(
    ("text", "status"),
    [("the whole answer", "done"), ("the whole" + PARTIAL_SHUTDOWN, "interrupted")],
)
def test_a_reply_that_was_saved_whole_is_shown_whole_after_a_kill(
    tmp_path: Path, text: str, status: str
) -> None:
    """Its row was in flight, some deltas behind; the model's view had the message already."""
    log = conversation(tmp_path)
    history = read_raw(tmp_path / "leaf.raw.jsonl")
    clock = iter(range(1000))
    recorder = TurnRecorder(log, history, [()] * 6, monotonic=lambda: float(next(clock)))
    recorder.record(events.StreamDelta(1, "the wh"))
    row_id = read_ui(log.ui_file.path).rows[-1]["id"]
    log.append(raw=[make.message(reply(text), [row_id])])

    view, raw = opened(tmp_path, epoch=2).load()

    assert (view.rows[-1]["id"], view.rows[-1]["status"]) == (row_id, status)
    assert view.rows[-1]["blocks"] == [{"type": "text", "text": text}]
    assert raw.messages[-1] == reply(text)
    assert view.open_rows == []


def test_a_block_that_names_no_call_leaves_a_whole_reply_as_it_is(tmp_path: Path) -> None:
    """Somebody wrote it into the row in flight; every later load raised."""
    log = opened(tmp_path)
    log.append(ui=[make.inflight("r", STAMP, {"0": {"type": "tool_call", "result": {"text": "odd"}}})])
    log.append(raw=[make.message(reply("all of it"), ["r"])])
    ui, _ = opened(tmp_path, epoch=2).load()
    (row,) = ui.rows
    assert (row["status"], row["blocks"]) == ("done", [{"type": "text", "text": "all of it"}])


def test_a_message_of_ten_megabytes_is_a_line_like_any_other(tmp_path: Path) -> None:
    log = opened(tmp_path)
    text = "x\u2028y\u202e\u200b\0" * 2_000_000
    say(log, "u0", user(text))
    say(log, "u1", user("short"))
    opened(tmp_path, epoch=2)
    assert read_raw(tmp_path / "leaf.raw.jsonl") == [user(text), user("short")]
    assert ids(tmp_path) == ["u0", "u1"]


ODD_RECORDS: list[tuple[str, dict[str, object]]] = [
    ("raw", {"t": "msg", "e": 1, "n": 6, "m": reply("x"), "rows": [-1]}),
    ("raw", {"t": "msg", "e": 1, "n": 6, "m": reply("x"), "rows": [["a0"]]}),
    ("raw", {"t": "msg", "e": 1, "n": 6, "m": {"kind": "response", "parts": [True]}}),
    ("raw", {"t": "msg", "e": 1, "n": 6, "m": {"kind": "response", "parts": [{"part_kind": "tool-call"}]}}),
    ("raw", {"t": "msg", "e": 1, "n": 6, "m": {"parts": []}}),
    ("raw", {"t": "msg", "e": 2**80, "n": 6, "m": reply("x"), "rows": []}),
    ("raw", {"t": "part", "e": 1, "n": [5], "p": {"part_kind": "text", "content": "x"}}),
    ("raw", {"t": "part", "e": 1, "n": 5, "p": {"content": "x"}}),
    ("ui", {"t": "late", "e": 1, "records": 5}),
    ("ui", {"t": "add", "e": 1, "seq": 7, "row": {"id": "odd"}}),
    ("ui", {"t": "add", "e": 1, "seq": 7, "row": {"id": "odd", "role": "assistant", "blocks": [5]}}),
    ("ui", {"t": "set", "e": 1, "seq": 7, "id": "a0", "field": "id", "value": "u0"}),
    ("ui", {"t": "add", "e": 1, "seq": 2**53, "row": {"id": "odd", "role": "system"}}),
    ("ui", {"t": "head", "e": 1, "seq": 7, "archived": -1}),
    ("raw", {"t": "msg", "e": 1, "n": 2**53, "m": reply("x"), "rows": []}),
    ("raw", {"t": "msg", "e": 1, "n": 6, "m": {"kind": "response", "parts": [{"part_kind": "text"}]}}),
    ("raw", {"t": "part", "e": 1, "n": 5, "p": {"part_kind": "user-prompt", "content": None}}),
    ("raw", {"t": "part", "e": 1, "n": 5, "p": {"part_kind": "thinking", "content": 5}}),
    ("ui", {"t": "add", "e": 1, "seq": 7, "row": {"id": "odd", "role": "user", "stamp": ["x"]}}),
    ("ui", {"t": "add", "e": 1, "seq": 7, "row": {"id": "odd", "role": "user"}, "before": 5}),
    (
        "ui",
        {
            "t": "add",
            "e": 1,
            "seq": 7,
            "row": {"id": "odd", "role": "assistant", "blocks": [{"call_id": []}]},
        },
    ),
    ("ui", {"t": "set", "e": 1, "seq": 7, "id": "u0", "field": "stamp", "value": ["x"]}),
    ("ui", {"t": "inflight", "e": 1, "seq": 7, "id": "odd", "blocks": {"9" * 5_000: {}}}),
    ("ui", {"t": "inflight", "e": 1, "seq": 7, "id": "odd", "blocks": {"\u0663": {}}}),
    ("ui", {"t": "inflight", "e": 1, "seq": 7, "id": "odd", "blocks": {"0": "text"}}),
    ("ui", {"t": "inflight", "e": 1, "seq": 7, "id": "odd", "at": 5, "blocks": {}}),
]


@pytest.mark.parametrize(("log", "record"), ODD_RECORDS)
def test_a_line_in_another_shape_is_damage_and_the_rest_is_read(
    tmp_path: Path, log: str, record: dict[str, object]
) -> None:
    """It was valid JSON, so it used to be folded: some of these made every later load raise or never end."""
    conversation(tmp_path)
    line = json.dumps(record).encode()
    with (tmp_path / f"leaf.{log}.jsonl").open("ab") as stream:
        stream.write(line + b"\n")
    opened(tmp_path, epoch=2)
    shown = read_ui(tmp_path / "leaf.ui.jsonl").rows
    assert [row["id"] for row in shown if row["role"] != "system"] == ["u0", "a0", "u1", "a1", "u2", "a2"]
    assert [row["kind"] for row in shown if row["role"] == "system"] == ["damage"]
    assert read_raw(tmp_path / "leaf.raw.jsonl")[5] == reply("answer 2")
    (kept,) = (json.loads(entry) for entry in (tmp_path / "leaf.damaged").read_text().splitlines())
    assert base64.b64decode(kept["bytes"]) == line


@pytest.mark.parametrize(
    "record",
    [
        {"t": "add", "e": 1, "seq": 3, "row": {"id": "again", "role": "system", "kind": "note"}},
        {"t": "add", "e": 1, "seq": 2**40, "row": {"id": "far", "role": "system", "kind": "note"}},
        {"t": "of a later version", "e": 1, "seq": 7},
        {"t": "set", "e": 1, "seq": 7, "id": "nobody", "field": "deleted", "value": True},
        {"t": "inflight", "e": 1, "seq": 7, "id": "a0", "blocks": {}},
        {"t": "head", "e": 1, "seq": 7, "archived": 0},
    ],
    ids=["a number that was there", "a number far away", "type", "set", "inflight", "head"],
)
def test_a_record_without_a_place_is_told_of_and_kept(tmp_path: Path, record: dict[str, object]) -> None:
    """It used to go to the file of damaged records without a word to anybody."""
    conversation(tmp_path)
    path = tmp_path / "leaf.ui.jsonl"
    with path.open("ab") as stream:
        stream.write(json.dumps(record).encode() + b"\n")
    before = read_ui(path).rows[-1]
    assert before["kind"] == "damage" and "1 record. When somebody next writes" in before["text"]
    opened(tmp_path, epoch=2)
    after = read_ui(path).rows
    assert [row["id"] for row in after[:-1]] == ["u0", "a0", "u1", "a1", "u2", "a2"]
    assert after[-1]["kind"] == "damage" and "1 record. They are kept in" in after[-1]["text"]
    (kept,) = (json.loads(entry) for entry in (tmp_path / "leaf.damaged").read_text().splitlines())
    assert (kept["log"], kept["record"]) == ("ui", record)


def test_a_number_that_no_view_could_parse_is_read_as_a_word(tmp_path: Path) -> None:
    row = make.user_row(row_id="a", at="t", stamp="t", text="one", images=[], source="")
    line = json.dumps({"seq": 1, **make.add({**row, "n": float("nan"), "m": [0.25, float("inf")]})})
    (tmp_path / "abc.ui.jsonl").write_text(f"{line}\n".replace("Infinity", "-1e999"))
    (shown,) = read_ui(tmp_path / "abc.ui.jsonl").rows
    assert (shown["n"], shown["m"]) == ("NaN", [0.25, "-1e999"])


def test_a_killed_call_does_not_show_an_earlier_result_of_the_same_id(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    history = read_raw(tmp_path / "leaf.raw.jsonl")
    recorder = TurnRecorder(log, history, [()] * 6)
    for number in (1, 2):
        call = {"part_kind": "tool-call", "tool_name": "grep", "args": {}, "tool_call_id": "call_0"}
        message = {"kind": "response", "parts": [call]}
        recorder.record(events.ToolCall(number, "call_0", "grep", {}))
        history.append(message)
        recorder.record(events.SavePoint(messages=(message,)))
        if number == 1:
            result = {
                "part_kind": "tool-return",
                "tool_name": "grep",
                "content": "of the first",
                "tool_call_id": "call_0",
            }
            answer = {"kind": "request", "parts": [result]}
            history.append(answer)
            recorder.record(events.ToolResult("call_0", "grep", "of the first"))
            recorder.record(events.SavePoint(messages=(answer,)))

    view, _ = opened(tmp_path, epoch=2).load()

    shown = [block for row in view.rows for block in row.get("blocks", ()) if block["type"] == "tool_call"]
    assert [block["result"]["text"] for block in shown] == ["of the first", ""]
    assert shown[1]["result"]["interrupted"]
    assert view.rows[-1]["status"] == "interrupted"
