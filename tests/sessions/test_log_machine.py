"""Any order of appends, kills with torn writes, late and foreign writers, damage, archivings, deletions, compactions
and reloads (invariants 10, 11). What a reader sees is checked twice: by Halo's and by one written from the page."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agents import history as wire
from agents.events import Message
from core import atomic
from sessions_app.logs import LeaseLostError, SessionLog, read_raw, read_session, read_ui
from sessions_app.logs import records as make
from sessions_app.logs.deletion import places_of, rows_of_turn
from sessions_app.logs.records import Row
from sessions_app.logs.segments import earlier_rows
from tests.sessions import page_reader


class Killed(BaseException):
    """The writer is gone in the middle of a write; nothing of it may be used again."""


def stamp_of(name: str) -> str:
    """Each name ends in a number of its own."""
    number = int("".join(character for character in name if character.isdigit()))
    return f"2026-01-31T09:30:00.{number:03d}Z"


def message(name: str) -> Message:
    text = f"[{stamp_of(name)}] {name}"
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


class LogMachine(RuleBasedStateMachine):
    """``said``: what was acknowledged, in order. ``maybe``: a write that was killed, so it is there or not.

    ``damaged``: lost to the model, ``compacted``: stands in a summary, ``deleted``: by a person. ``gone``: not
    even shown any more, because the row was damaged when the model no longer had its message.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="halo-log-machine-"))
        self.said: list[str] = []
        self.maybe: str | None = None
        self.unaccepted: list[str] = []
        self.damaged: set[str] = set()
        self.compacted: set[str] = set()
        self.deleted: set[str] = set()
        self.gone: set[str] = set()
        self.streamed: list[str] = []
        self.discarded: list[str] = []
        self.count = 0
        self.epoch = 0
        self.former: list[SessionLog] = []
        self.writer: SessionLog | None = None

    @initialize()
    def begin(self) -> None:
        self.succeed()

    @rule()
    def succeed(self) -> None:
        """A new holder of the lease reads the logs and goes on."""
        if self.writer is not None:
            self.former.append(self.writer)
        self.epoch += 1
        self.writer = SessionLog(self.folder, "s", epoch=self.epoch, fsync="never")
        _, raw = self.writer.load()
        if self.maybe is not None:
            if self.maybe in self.texts(raw.messages):
                self.said.append(self.maybe)
            self.maybe = None

    @precondition(lambda self: self.writer is not None)
    @rule()
    def say(self) -> None:
        assert self.writer is not None
        name = self.name("m")
        self.append(self.writer, name)
        self.said.append(name)

    @precondition(lambda self: self.writer is not None)
    @rule(share=st.floats(0, 1), write=st.integers(1, 2))
    def killed_in_a_write(self, share: float, write: int) -> None:
        """At the first (raw) or second (ui) write only a share of the bytes arrives."""
        assert self.writer is not None
        whole, seen, name = atomic.write_all, 0, self.name("k")

        def torn(descriptor: int, data: bytes) -> None:
            nonlocal seen
            seen += 1
            if seen == write:
                whole(descriptor, data[: int(len(data) * share)])
                raise Killed
            whole(descriptor, data)

        atomic.write_all = torn
        try:
            self.append(self.writer, name)
            self.said.append(name)
        except Killed:
            self.maybe = name
            self.writer = None
        finally:
            atomic.write_all = whole

    @precondition(lambda self: self.former and self.writer is not None and self.said)
    @rule(which=st.integers(0, 5))
    def a_late_writer_appends(self, which: int) -> None:
        """It has lost the lease without knowing; what it says is kept, but is no part of the conversation."""
        assert self.writer is not None
        late = self.former[which % len(self.former)]
        if late.epoch >= self.written_epoch():
            return
        name = self.name("late")
        try:
            self.append(late, name)
        except LeaseLostError:
            self.unaccepted.append(name)
        else:
            raise AssertionError("a late writer was not told")

    @precondition(lambda self: self.writer is not None)
    @rule(log=st.sampled_from(["ui", "raw"]))
    def a_stranger_appends_a_record_of_an_old_epoch(self, log: str) -> None:
        name = self.name("old")
        record = {**make.message(message(name)), "n": 999, "e": 0}
        if log == "ui":
            row = make.user_row(row_id=name, at="", stamp=stamp_of(name), text=name)
            record = {**make.add(row), "seq": 999_999, "e": 0}
        path = self.folder / f"s.{log}.jsonl"
        if not path.exists() or not self.written_epoch():
            return
        with path.open("ab") as stream:
            stream.write(make.encode([record]))
        self.unaccepted.append(name)

    @precondition(lambda self: self.writer is not None and len(self.held()) > 1)
    @rule(
        log=st.sampled_from(["ui", "raw"]), place=st.integers(0, 100), data=st.sampled_from(["nul", "half"])
    )
    def a_line_in_the_middle_is_damaged(self, log: str, place: int, data: str) -> None:
        path = self.folder / f"s.{log}.jsonl"
        lines = path.read_bytes().split(b"\n")
        kind = b'"t":"add"' if log == "ui" else b'"t":"msg"'
        sound = [
            n
            for n, line in enumerate(lines[:-2])
            if kind in line and any(f'"{name}"'.encode() in line for name in self.said)
        ]
        if not sound:
            return
        chosen = sound[place % len(sound)]
        names = {name for name in self.said if f'"{name}"'.encode() in lines[chosen]}
        self.damage(path, lines, chosen, data)
        if log == "raw":
            self.damaged |= names
        else:
            self.gone |= names - set(self.held())
        self.succeed()

    @precondition(lambda self: self.writer is not None)
    @rule(data=st.sampled_from(["nul", "half"]))
    def the_head_is_damaged(self, data: str) -> None:
        path = self.folder / "s.ui.jsonl"
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        if b'"t":"head"' not in lines[0] or not any(b'"t":"add"' in line for line in lines):
            return
        self.damage(path, lines, 0, data)
        self.succeed()

    @precondition(lambda self: self.writer is not None)
    @rule(end=st.sampled_from(["add", "drop", "open"]))
    def stream(self, end: str) -> None:
        """A reply grows; it is finished, discarded, or cut off there."""
        assert self.writer is not None
        row_id = self.name("s")
        self.writer.append(ui=[make.inflight(row_id, "", {"0": {"type": "text", "text": "half"}})])
        if end == "add":
            blocks = [{"type": "text", "text": "whole"}]
            self.writer.append(ui=[make.add(make.assistant_row(row_id=row_id, at="", blocks=blocks))])
        if end == "drop":
            self.writer.append(ui=[make.drop(row_id)])
        (self.discarded if end == "drop" else self.streamed).append(row_id)

    @precondition(lambda self: self.writer is not None and len(self.held()) > 2)
    @rule(keep=st.integers(1, 2))
    def compact(self, keep: int) -> None:
        assert self.writer is not None
        _, raw = self.writer.load()
        summary = wire.summary_message("[summary] of it", of=len(raw.messages) - keep, kept=keep)
        self.writer.replace_history([summary, *raw.messages[-keep:]], [(), *raw.rows[-keep:]])
        self.compacted |= set(self.held()[:-keep])

    @precondition(lambda self: self.writer is not None)
    @rule()
    def archive(self) -> None:
        assert self.writer is not None
        self.writer.archive(over=0)

    @precondition(lambda self: self.writer is not None)
    @rule(write=st.integers(1, 2))
    def killed_while_archiving(self, write: int) -> None:
        """Before the segment is there, or between it and the short log."""
        assert self.writer is not None
        whole, seen = atomic.write_bytes, 0

        def killed(path: Path, data: bytes, *, mode: int = 0o644) -> None:
            nonlocal seen
            seen += 1
            if seen == write:
                raise Killed
            whole(path, data, mode=mode)

        atomic.write_bytes = killed
        try:
            self.writer.archive(over=0)
        except Killed:
            self.writer = None
        finally:
            atomic.write_bytes = whole

    @precondition(lambda self: self.former and self.writer is not None and self.said)
    @rule(which=st.integers(0, 5))
    def a_late_writer_archives(self, which: int) -> None:
        late = self.former[which % len(self.former)]
        if late.epoch >= self.written_epoch():
            return
        try:
            late.archive(over=0)
        except LeaseLostError:
            return
        raise AssertionError("a late writer was not told")

    @precondition(lambda self: self.writer is not None and self.shown_names())
    @rule(which=st.integers(0, 100), killed=st.booleans())
    def delete(self, which: int, killed: bool) -> None:
        """One message; a kill in between leaves it marked, and the next writer finishes it."""
        assert self.writer is not None
        ui, raw = self.writer.load()
        names = [name for name in self.shown_names() if name not in self.deleted | self.damaged]
        if not names:
            return
        name = names[which % len(names)]
        parts = [ui.rows, list(earlier_rows(self.folder, "s", ui.archived))]
        rows, place = next(
            (rows, place) for rows in parts for place, row in enumerate(rows) if row["id"] == name
        )
        spots = places_of(stamp_of(name), raw.messages)
        turn = rows_of_turn(rows, place)
        if killed and rows is ui.rows:
            self.writer.append(ui=[make.set_field(row["id"], "deleted", True) for row in turn])
            self.succeed()
        else:
            self.writer.delete(turn, ui, raw, spots[0] if spots else None)
        self.deleted.add(name)

    @invariant()
    def both_views_hold_what_was_said_each_once_and_name_the_rest(self) -> None:
        ui, raw = read_session(self.folder, "s")
        optional = [self.maybe] if self.maybe else []
        assert self.texts(raw.messages) in (self.held(), [*self.held(), *optional])
        rows = [*earlier_rows(self.folder, "s", ui.archived), *ui.rows]
        assert len({row["id"] for row in rows}) == len(rows)
        people = {row["id"]: row for row in rows if row["role"] == "user"}
        order = [name for name in [*self.said, *optional] if name in people]
        held = set(self.held())
        assert [name for name in people if name in held] == [name for name in order if name in held]
        never_lost = [name for name, row in people.items() if not row.get("restored")]
        assert never_lost == [name for name in order if name in never_lost]
        assert {name for name in self.said if name not in people} <= self.gone | self.damaged
        for name in self.said:
            if name not in people:
                assert self.aside(name)
                continue
            row = people[name]
            assert bool(row.get("deleted")) == (name in self.deleted)
            assert not row.get("lost") or name in self.damaged | self.compacted | self.deleted
            assert row.get("lost") or name not in self.damaged - self.compacted or self.aside(name)
        ids = [row["id"] for row in rows if row["role"] == "assistant"]
        assert ids == self.streamed
        assert not set(ids) & set(self.discarded)
        notes = str([row for row in rows if row["role"] == "system"]) + str(raw.late)
        for name in self.unaccepted:
            assert name in notes or self.aside(name) or ui.damages or raw.damages

    @invariant()
    def a_reader_written_from_the_page_sees_the_same(self) -> None:
        view = read_ui(self.folder / "s.ui.jsonl")
        rows = [*earlier_rows(self.folder, "s", view.archived), *view.rows]
        assert list(map(told, page_reader.whole(self.folder, "s"))) == list(map(told, rows))
        assert page_reader.raw(self.folder / "s.raw.jsonl")[0] == read_raw(self.folder / "s.raw.jsonl")

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def append(self, log: SessionLog, name: str) -> None:
        row = make.user_row(row_id=name, at="", stamp=stamp_of(name), text=name)
        log.append(ui=[make.add(row)], raw=[make.message(message(name), [name])])

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}."

    def written_epoch(self) -> int:
        ui, raw = read_session(self.folder, "s")
        return min(ui.epoch, raw.epoch)

    def aside(self, name: str) -> bool:
        """Whether the damaged file holds it: as a record, or as bytes that no longer say what they were."""
        return (self.folder / "s.damaged").exists()

    def held(self) -> list[str]:
        """What the model still reads word for word."""
        return [name for name in self.said if name not in self.damaged | self.compacted | self.deleted]

    def shown_names(self) -> list[str]:
        return [name for name in self.said if name not in self.gone]

    @staticmethod
    def damage(path: Path, lines: list[bytes], chosen: int, data: str) -> None:
        line = lines[chosen]
        lines[chosen] = b"\0" * len(line) if data == "nul" else line[: len(line) // 2]
        path.write_bytes(b"\n".join(lines))

    @staticmethod
    def texts(messages: list[Message]) -> list[str]:
        return [
            found["parts"][0]["content"].split("] ", 1)[1] for found in messages if not wire.is_summary(found)
        ]


def told(row: Row) -> object:
    """A row, as far as the page says what it is."""
    return row["kind"] if row["role"] == "system" else row


LogMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=18, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogs = LogMachine.TestCase
