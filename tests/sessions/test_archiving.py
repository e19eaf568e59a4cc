"""Archiving: earlier exchanges move into segments, whatever happens in between, and no row is lost or twice."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents import events
from agents.turn import TurnOutcome
from core import atomic
from core.paths import HaloHome
from sessions_app import lease
from sessions_app.errors import SessionRefused
from sessions_app.finish_turn import finish_turn
from sessions_app.logs import LeaseLostError, SessionLog, TurnRecorder, read_session, segments
from sessions_app.logs.deletion import places_of, rows_of_turn
from sessions_app.logs.records_after import records_after
from sessions_app.logs.segments import earlier_rows, read_segment, segment_path
from sessions_app.models import Session
from sessions_app.open_session import open_session
from sessions_app.opened_session import note
from sessions_app.places import log_folder, log_leaf, ui_log
from sessions_app.selectors import archived_rows
from tests.sessions.conftest import NOW
from tests.sessions.conversations import exchange, stamp_of, talked

Folder = Path


def opened(folder: Folder, epoch: int = 1) -> SessionLog:
    log = SessionLog(folder, "leaf", epoch=epoch)
    log.load()
    return log


def spoken(folder: Folder, exchanges: int) -> SessionLog:
    log = opened(folder)
    for number in range(exchanges):
        exchange(log, number)
    return log


def compacted(log: SessionLog, keep: int) -> None:
    """What a compaction leaves: a summary, and the last ``keep`` messages with the rows that show them."""
    _, raw = read_session(log.folder, log.leaf)
    summary = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "[summary] talk"}]}
    log.replace_history([summary, *raw.messages[-keep:]], [(), *raw.rows[-keep:]])


def all_ids(folder: Folder) -> list[str]:
    ui, _ = read_session(folder, "leaf")
    return [row["id"] for row in [*earlier_rows(folder, "leaf", ui.archived), *ui.rows]]


def expected(exchanges: int) -> list[str]:
    return [f"{kind}{number}" for number in range(exchanges) for kind in "ua"]


def test_all_but_the_newest_exchange_move_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = spoken(tmp_path, 4)
    compacted(log, keep=4)
    assert log.archive(over=0)
    ui, raw = read_session(tmp_path, "leaf")
    assert [row["id"] for row in ui.rows] == ["u3", "a3"]
    assert (ui.archived, len(raw.messages)) == (1, 5)
    assert ui.stamps == tuple(stamp_of(n) for n in range(3))
    exchange(log, 4)
    assert log.archive(over=0)
    assert read_session(tmp_path, "leaf")[0].archived == 2
    assert [row["id"] for row in read_segment(tmp_path, "leaf", 2).rows] == ["u3", "a3"]
    assert all_ids(tmp_path) == expected(5)
    opened(tmp_path, epoch=2)
    assert all_ids(tmp_path) == expected(5), (
        "messages whose rows were archived don't come back as restored rows"
    )


def test_a_short_log_and_one_exchange_stay(tmp_path: Path) -> None:
    log = spoken(tmp_path, 3)
    before = log.ui_file.path.read_bytes()
    assert not log.archive()
    assert not spoken(tmp_path / "one", 1).archive(over=0)
    assert log.ui_file.path.read_bytes() == before
    assert list(tmp_path.glob("*.gz")) == []


def test_a_log_over_three_megabytes_is_archived_by_itself(tmp_path: Path) -> None:
    log = spoken(tmp_path, 2)
    log.append(
        ui=[{"t": "add", "row": {"id": "s", "role": "system", "at": "", "kind": "note", "text": "x" * 2**20}}]
    )
    assert not log.archive()
    log.append(ui=[{"t": "set", "id": "s", "field": "text", "value": "y" * 2**21}])
    assert log.archive()


def test_followers_are_told_and_find_the_head(tmp_path: Path) -> None:
    log = spoken(tmp_path, 3)
    last = records_after(log.ui_file.path, after=0, limit=100).last
    log.archive(over=0)
    again = records_after(log.ui_file.path, after=last, limit=100)
    assert (again.reload, again.records[0]["t"], again.records[0]["archived"]) == (True, "head", 1)
    exchange(log, 3)
    assert not records_after(log.ui_file.path, after=again.last, limit=100).reload


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", [1, 2])
def test_killed_between_segment_and_short_log_nothing_is_lost_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    log = spoken(tmp_path, 3)
    whole, seen = atomic.write_bytes, 0

    def killed(path: Path, data: bytes, *, mode: int = 0o644) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            raise Killed
        whole(path, data, mode=mode)

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_bytes", killed)
        with pytest.raises(Killed):
            log.archive(over=0)
    assert segment_path(tmp_path, "leaf", 1).exists() == (at == 2)
    assert all_ids(tmp_path) == expected(3)
    successor = opened(tmp_path, epoch=2)
    assert all_ids(tmp_path) == expected(3)
    exchange(successor, 3)
    assert successor.archive(over=0)
    assert [row["id"] for row in read_segment(tmp_path, "leaf", 1).rows] == expected(3), (
        "the orphan is overwritten"
    )
    assert all_ids(tmp_path) == expected(4)


def killed_at(number: int, *, after: bool, work: Callable[[], object]) -> None:
    """In a process of its own that ends by SIGKILL before or after its ``number``-th whole file."""
    child = os.fork()
    if child == 0:
        whole, seen = atomic.write_bytes, 0

        def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
            nonlocal seen
            seen += 1
            if seen == number and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            whole(path, data, mode=mode)
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

        atomic.write_bytes = write
        work()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_process_killed_while_archiving_loses_nothing(tmp_path: Path, number: int, after: bool) -> None:
    log = spoken(tmp_path, 3)
    killed_at(number, after=after, work=lambda: log.archive(over=0))
    assert all_ids(tmp_path) == expected(3)
    successor = opened(tmp_path, epoch=2)
    exchange(successor, 3)
    successor.archive(over=0)
    assert all_ids(tmp_path) == expected(4)


@pytest.mark.parametrize("after", [False, True])
def test_a_process_killed_while_deleting_is_finished_by_the_next(tmp_path: Path, after: bool) -> None:
    """Killed at the raw log, when the row is marked already."""
    log = spoken(tmp_path, 3)
    ui, raw = log.load()
    (place,) = places_of(stamp_of(1), raw.messages)
    rows = rows_of_turn(ui.rows, 2)
    killed_at(1, after=after, work=lambda: log.delete(rows, ui, raw, place))
    opened(tmp_path, epoch=2)
    ui, raw = read_session(tmp_path, "leaf")
    assert [row["id"] for row in ui.rows if row.get("deleted")] == ["u1", "a1"]
    assert raw.rows == [("u0",), ("a0",), ("u2",), ("a2",)]


def test_a_late_writer_archives_nothing_and_overwrites_no_segment(tmp_path: Path) -> None:
    old = spoken(tmp_path, 3)
    new = opened(tmp_path, epoch=2)
    exchange(new, 3)
    new.archive(over=0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(LeaseLostError):
        old.archive(over=0)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_row_in_flight_goes_on_growing_behind_an_archiving(tmp_path: Path) -> None:
    log = spoken(tmp_path, 3)
    _, raw = read_session(tmp_path, "leaf")
    ticks = iter(range(1000))
    recorder = TurnRecorder(log, raw.messages, raw.rows, monotonic=lambda: float(next(ticks)))
    recorder.record(events.StreamDelta(1, "half "))
    row_id = read_session(tmp_path, "leaf")[0].rows[-1]["id"]
    assert log.archive(over=0)
    recorder.record(events.StreamDelta(1, "and half"))
    recorder.record(events.Stream(1, "half and half"))
    recorder.record(events.Complete("completed", "half and half", 1))
    ui, _ = read_session(tmp_path, "leaf")
    assert [row["id"] for row in ui.rows] == ["u2", "a2", row_id]
    assert (ui.rows[-1]["status"], ui.rows[-1]["blocks"][0]["text"]) == ("done", "half and half")


@pytest.mark.parametrize("lost", ["head", "log"])
def test_a_log_that_lost_its_head_finds_its_segments_again(tmp_path: Path, lost: str) -> None:
    log = spoken(tmp_path, 4)
    compacted(log, keep=4)
    log.archive(over=0)
    if lost == "log":
        log.ui_file.path.unlink()
    else:
        lines = log.ui_file.path.read_bytes().split(b"\n")
        log.ui_file.path.write_bytes(b"\n".join([b"\0" * len(lines[0]), *lines[1:]]))
    successor = opened(tmp_path, epoch=2)
    ui, _ = read_session(tmp_path, "leaf")
    assert ui.archived == 1
    assert [row_id for row_id in all_ids(tmp_path) if "damage" not in row_id] == expected(4)
    exchange(successor, 4)
    successor.archive(over=0)
    assert [row["id"] for row in read_segment(tmp_path, "leaf", 1).rows] == expected(3), (
        "it is not overwritten"
    )


def test_messages_lost_to_damage_mark_their_archived_rows(tmp_path: Path) -> None:
    log = spoken(tmp_path, 4)
    compacted(log, keep=6)
    log.archive(over=0)
    path = log.raw_file.path
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"\0"
    path.write_bytes(b"\n".join(lines))
    opened(tmp_path, epoch=2)
    assert [row["id"] for row in read_segment(tmp_path, "leaf", 1).rows if row.get("lost")] == ["u2"]
    size = log.ui_file.path.stat().st_size
    opened(tmp_path, epoch=3)
    assert log.ui_file.path.stat().st_size == size, "marked once"


@pytest.mark.parametrize("how", ["gone", "cut", "no gzip", "a bad line", "bomb"])
def test_a_segment_that_can_not_be_read_whole_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    spoken(tmp_path, 200).archive(over=0)
    path = segment_path(tmp_path, "leaf", 1)
    data = path.read_bytes()
    match how:
        case "gone":
            path.unlink()
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "no gzip":
            path.write_bytes(b"\0" * 50)
        case "a bad line":
            lines = gzip.decompress(data).split(b"\n")
            path.write_bytes(gzip.compress(b"\n".join([lines[0], b"\xff\0", *lines[1:]])))
        case "bomb":
            monkeypatch.setattr(segments, "MAX_BYTES", 2**20)
            path.write_bytes(gzip.compress(gzip.decompress(data) + b"\0" * 2**25))
            assert path.stat().st_size < 100_000
    found = read_segment(tmp_path, "leaf", 1)
    damage = [row for row in found.rows if row.get("kind") == "damage"]
    assert len(damage) >= 1
    assert not found.whole
    assert len(found.rows) == {"gone": 1, "no gzip": 1, "bomb": 399}.get(how, len(found.rows))
    before = path.read_bytes() if path.exists() else b""
    segments.set_in_segments(tmp_path, "leaf", 1, {"u0": {"deleted": True}})
    assert (path.read_bytes() if path.exists() else b"") == before, (
        "nothing is written over what wasn't understood"
    )


def test_long_rows_are_parted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 300)
    log = spoken(tmp_path, 6)
    log.archive(over=0)
    ui, _ = read_session(tmp_path, "leaf")
    assert ui.archived > 2
    assert all_ids(tmp_path) == expected(6)


def test_segments_are_their_owners_alone(tmp_path: Path) -> None:
    spoken(tmp_path, 3).archive(over=0)
    assert segment_path(tmp_path, "leaf", 1).stat().st_mode & 0o077 == 0


def test_views_load_one_segment_at_a_time(session: Session) -> None:
    log = talked(session, 3)
    log.archive(over=0)
    exchange(log, 3)
    log.archive(over=0)
    assert [row["id"] for row in archived_rows(session, 2)] == ["u2", "a2"]
    assert [row["id"] for row in archived_rows(session, 1)] == ["u0", "a0", "u1", "a1"]
    for number in (0, 3, -1):
        with pytest.raises(SessionRefused, match="has no part"):
            archived_rows(session, number)


def test_the_transcript_page_goes_up_part_by_part(session: Session, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    log = talked(session, 3)
    log.archive(over=0)
    exchange(log, 3)
    log.archive(over=0)
    page = f"/admin/sessions_app/session/{session.pk}/change/"
    first = client.get(page).content.decode()
    assert "question 3" in first
    assert "question 2" not in first
    assert 'href="?part=2#transcript"' in first
    second = client.get(f"{page}?part=2").content.decode()
    assert "question 2" in second
    assert 'href="?part=1#transcript"' in second
    third = client.get(f"{page}?part=1").content.decode()
    assert "question 0" in third
    assert 'href="?#transcript"' in third
    assert "Earlier rows" not in third
    for odd in ("9", "0", "x", "-1", "1" * 50):
        assert "question 3" in client.get(f"{page}?part={odd}").content.decode()


def test_the_row_count_of_a_damaged_file_is_still_a_path(session: Session) -> None:
    talked(session, 1)
    ui_log(session).write_bytes(b'{"t":"head","seq":1,"e":0,"archived":"../../x"}\n')
    with pytest.raises(SessionRefused):
        archived_rows(session, 1)
    assert log_folder(session) / log_leaf(session)


def test_the_turn_that_compacted_archives_a_long_log_at_its_end(session: Session, tmp_path: Path) -> None:
    talked(session, 3)
    held = lease.acquire(session.pk)
    opened = open_session(session.pk, home=HaloHome(tmp_path / "home"), held=held)
    note(opened, "x" * segments.ARCHIVE_OVER)
    outcome = TurnOutcome("completed", "fine", "")
    spent = events.Usage(1, 1)
    finish_turn(opened, outcome, spent=spent, context_tokens=0, now=NOW)
    assert read_session(log_folder(session), log_leaf(session))[0].archived == 0
    opened.compacted = True
    finish_turn(opened, outcome, spent=spent, context_tokens=0, now=NOW)
    assert [row["id"] for row in archived_rows(session, 1)] == ["u0", "a0", "u1", "a1"]
    again = open_session(session.pk, home=HaloHome(tmp_path / "home"), held=held)
    assert {stamp_of(number) for number in range(3)} <= again.stamps, (
        "an archived message isn't taken in again"
    )
    lease.release(held)
