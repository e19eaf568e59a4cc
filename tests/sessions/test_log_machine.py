"""Any order of appends, kills with torn writes, late and foreign writers, damage and reloads (invariants 10, 11)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agents.events import Message
from core import atomic
from sessions_app.logs import LeaseLostError, SessionLog, read_session
from sessions_app.logs import records as make

STAMP = "2026-01-31T09:30:00.123Z"


class Killed(BaseException):
    """The writer is gone in the middle of a write; nothing of it may be used again."""


def message(name: str) -> Message:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": f"[{STAMP}] {name}"}]}


class LogMachine(RuleBasedStateMachine):
    """``said``: what was acknowledged, in order. ``maybe``: a write that was killed, so it is there or not."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="halo-log-machine-"))
        self.said: list[str] = []
        self.maybe: str | None = None
        self.unaccepted: list[str] = []
        self.damaged: set[str] = set()
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
            row = make.user_row(row_id=name, at=STAMP, stamp=STAMP, text=name)
            record = {**make.add(row), "seq": 999_999, "e": 0}
        path = self.folder / f"s.{log}.jsonl"
        if not path.exists() or not self.written_epoch():
            return
        with path.open("ab") as stream:
            stream.write(make.encode([record]))
        self.unaccepted.append(name)

    @precondition(lambda self: self.writer is not None and len(self.said) > len(self.damaged) + 1)
    @rule(
        log=st.sampled_from(["ui", "raw"]), place=st.integers(0, 100), data=st.sampled_from(["nul", "half"])
    )
    def a_line_in_the_middle_is_damaged(self, log: str, place: int, data: str) -> None:
        path = self.folder / f"s.{log}.jsonl"
        lines = path.read_bytes().split(b"\n")
        sound = [
            n for n, line in enumerate(lines[:-2]) if any(f'"{name}"'.encode() in line for name in self.said)
        ]
        if not sound:
            return
        chosen = sound[place % len(sound)]
        names = [name for name in self.said if f'"{name}"'.encode() in lines[chosen]]
        lines[chosen] = (
            b"\0" * len(lines[chosen]) if data == "nul" else lines[chosen][: len(lines[chosen]) // 2]
        )
        path.write_bytes(b"\n".join(lines))
        if log == "raw":
            self.damaged.update(names)
        self.succeed()

    @invariant()
    def both_views_hold_what_was_said_each_once_and_name_the_rest(self) -> None:
        ui, raw = read_session(self.folder, "s")
        expected = [name for name in self.said if name not in self.damaged]
        optional = [self.maybe] if self.maybe else []
        assert self.texts(raw.messages) in (expected, [*expected, *optional])
        shown = [row["text"] for row in ui.rows if row["role"] == "user" and not row.get("lost")]
        assert shown in (expected, [*expected, *optional])
        assert len({row["id"] for row in ui.rows}) == len(ui.rows)
        for name in self.damaged:
            assert any(row["id"] == name and row.get("lost") for row in ui.rows) or self.aside(name)
        notes = str([row for row in ui.rows if row["role"] == "system"]) + str(raw.late)
        for name in self.unaccepted:
            assert name in notes or self.aside(name) or ui.damages or raw.damages

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def append(self, log: SessionLog, name: str) -> None:
        row = make.user_row(row_id=name, at=STAMP, stamp=STAMP, text=name)
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

    @staticmethod
    def texts(messages: list[Message]) -> list[str]:
        return [found["parts"][0]["content"].split("] ", 1)[1] for found in messages]


LogMachine.TestCase.settings = settings(
    max_examples=30, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLogs = LogMachine.TestCase
