"""Who follows a log by number sees every change of it, and is told when it was written anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions_app.logs import SessionLog, read_session
from sessions_app.logs import records as make
from sessions_app.logs.records_after import records_after
from tests.sessions.test_logs import STAMP, conversation, opened, reply, say, user


def ui_path(folder: Path) -> Path:
    return folder / "leaf.ui.jsonl"


def test_what_was_added_is_read_and_nothing_reloaded(tmp_path: Path) -> None:
    log = conversation(tmp_path)
    seen = records_after(ui_path(tmp_path), after=0, limit=4)
    assert (len(seen.records), seen.last, seen.more, seen.reload) == (4, 4, True, False)
    say(log, "u3", user("more"))
    rest = records_after(ui_path(tmp_path), after=seen.last, limit=100)
    assert [record["row"]["id"] for record in rest.records] == ["u2", "a2", "u3"]
    nothing = records_after(ui_path(tmp_path), after=rest.last, limit=100)
    assert (nothing.records, nothing.last, nothing.reload) == ([], rest.last, False)


def damaged_and_mended(folder: Path, _log: SessionLog) -> None:
    lines = ui_path(folder).read_bytes().split(b"\n")
    lines[5] = b"\0\0"
    ui_path(folder).write_bytes(b"\n".join(lines))
    opened(folder, epoch=2)


def the_last_line_damaged_and_mended(folder: Path, _log: SessionLog) -> None:
    lines = ui_path(folder).read_bytes().split(b"\n")
    ui_path(folder).write_bytes(b"\n".join([*lines[:-2], b"\0", b""]))
    opened(folder, epoch=2)


def a_stranger_wrote_and_lost(folder: Path, log: SessionLog) -> None:
    row = make.system_row(row_id="stranger", at=STAMP, kind="note", text="me too")
    with ui_path(folder).open("ab") as stream:
        stream.write(make.encode([{**make.add(row), "seq": 7, "e": 1}]))
    say(log, "u3", user("ours"))


def a_late_writer_was_noted(folder: Path, log: SessionLog) -> None:
    say(opened(folder, epoch=2), "u3", user("ours"))
    row = make.system_row(row_id="late one", at=STAMP, kind="note", text="me too")
    with ui_path(folder).open("ab") as stream:
        stream.write(make.encode([{**make.add(row), "seq": 8, "e": 1}]))
    opened(folder, epoch=3)


def put_back_from_a_backup(folder: Path, _log: SessionLog) -> None:
    lines = ui_path(folder).read_bytes().split(b"\n")
    ui_path(folder).write_bytes(b"\n".join([*lines[:3], b""]))


@pytest.mark.parametrize(
    "change",
    [
        damaged_and_mended,
        the_last_line_damaged_and_mended,
        a_stranger_wrote_and_lost,
        a_late_writer_was_noted,
        put_back_from_a_backup,
    ],
)
def test_a_log_that_was_written_anew_is_told_and_read_from_its_beginning(
    tmp_path: Path, change: object
) -> None:
    log = conversation(tmp_path)
    seen = records_after(ui_path(tmp_path), after=0, limit=1000)
    assert callable(change)
    change(tmp_path, log)
    again = records_after(ui_path(tmp_path), after=seen.last, limit=1000)
    assert again.reload
    shown = {record["row"]["id"] for record in again.records if record["t"] == "add"}
    assert {row["id"] for row in read_session(tmp_path, "leaf")[0].rows} >= shown
    assert not records_after(ui_path(tmp_path), after=again.last, limit=1000).reload


def test_a_reader_of_the_stranger_who_saw_its_number_is_told(tmp_path: Path) -> None:
    """The stranger's number 7 is not given to the note that keeps what it said."""
    log = conversation(tmp_path)
    row = make.system_row(row_id="stranger", at=STAMP, kind="note", text="me too")
    with ui_path(tmp_path).open("ab") as stream:
        stream.write(make.encode([{**make.add(row), "seq": 7, "e": 1}]))
    assert records_after(ui_path(tmp_path), after=6, limit=9).last == 7
    say(log, "u3", user("ours"))
    assert records_after(ui_path(tmp_path), after=7, limit=9).reload


def test_a_log_that_is_gone_is_told_as_well(tmp_path: Path) -> None:
    conversation(tmp_path)
    ui_path(tmp_path).unlink()
    assert records_after(ui_path(tmp_path), after=6, limit=9).reload
    assert not records_after(ui_path(tmp_path), after=0, limit=9).reload


def test_a_message_taken_out_of_the_raw_log_by_hand_is_a_gap_and_the_next_one_is_kept(tmp_path: Path) -> None:
    """Numbers went on from the count of messages, below the last one: the next reader threw them out."""
    conversation(tmp_path)
    path = tmp_path / "leaf.raw.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], *lines[3:]]))
    log = opened(tmp_path, epoch=2)
    say(log, "u3", user("on"))
    ui, raw = read_session(tmp_path, "leaf")
    assert [message["parts"][0]["content"][-4:] for message in raw.messages[-2:]] == ["er 2", "] on"]
    assert raw.orphans == []
    assert [row["id"] for row in ui.rows if row.get("lost")] == ["u1"]
    assert "1 messages are missing" in next(row["text"] for row in ui.rows if row["role"] == "system")


def test_a_late_record_beside_damage_is_noted_and_the_damage_kept_aside(tmp_path: Path) -> None:
    new = opened(tmp_path, epoch=2)
    for number in range(3):
        say(new, f"u{number}", user(f"question {number}"))
    path = tmp_path / "leaf.raw.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[1] = b"\0\0\0"
    late = make.encode([{**make.message(reply("late words")), "n": 9, "e": 1}])
    path.write_bytes(b"\n".join(lines) + late)
    seen = read_session(tmp_path, "leaf")[0]
    assert "late words" in str(seen.rows[-1]["kept"])
    opened(tmp_path, epoch=3)
    ui, raw = read_session(tmp_path, "leaf")
    assert len(raw.messages) == 2
    assert "late words" in str([row.get("kept") for row in ui.rows])
    assert "AAAA" in (tmp_path / "leaf.damaged").read_text()
