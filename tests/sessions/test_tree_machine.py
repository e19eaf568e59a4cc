"""Any order of starts, messages, turns, stops and archives: every outcome is told once, and only when quiet."""

from __future__ import annotations

import itertools
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agents.turn import TurnOutcome
from core import clock
from core.processes import host_name
from sessions_app import queue, reply_to, trees
from sessions_app.archive_session import archive_session
from sessions_app.create import create_session
from sessions_app.errors import SessionRefused
from sessions_app.models import QueuedMessage, Session
from sessions_app.settlement import settle_turn
from sessions_app.stop_tree import mark_stopped
from tests.sessions.conftest import NOW
from tests.sessions.trees import end_turn, start, told, write_agent
from workspaces.models import Workspace

WHICH = st.integers(min_value=0, max_value=30)
STATUSES = st.sampled_from(["completed", "completed", "failed", "aborted", "interrupted"])


class Tree(RuleBasedStateMachine):
    """``asked``: sub-sessions with a message that must be told an outcome of. ``debts``: of the root, begun so far."""

    def __init__(self) -> None:
        super().__init__()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name).resolve()
        write_agent(root / ".halo" / "agents" / "helper")
        workspace = Workspace.objects.create(path=str(root), host=host_name(), created_at=NOW)
        self.root, self.caller = (
            create_session(
                workspace=workspace, agent_id="helper", agent_name="H", access_level="full", now=NOW
            )
            for _ in range(2)
        )
        self.asked: set[str] = set()
        self.debts = 0

    def teardown(self) -> None:
        try:
            self.settle_down()
        finally:
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)
            self.folder.cleanup()

    def all(self) -> list[Session]:
        return list(
            Session.objects.filter(trees.within(self.root.pk), archived_at=None).order_by("created_at", "pk")
        )

    def pick(self, which: int) -> Session:
        rows = self.all()
        return rows[which % len(rows)]

    @rule(which=WHICH)
    @precondition(lambda self: len(self.all()) < 9)
    def starts(self, which: int) -> None:
        caller = self.pick(which)
        try:
            self.asked.add(start(caller).pk)
        except SessionRefused:
            assert caller.stopped_at is not None

    @rule(which=WHICH)
    def is_asked(self, which: int) -> None:
        session = self.pick(which)
        queue.accept(session=session, text="a question", now=clock.now())
        if not session.is_root:
            self.asked.add(session.pk)

    @rule()
    def is_relayed(self) -> None:
        debt = {"relay": {"workspace": self.root.workspace_id, "session": self.caller.pk}}
        row = Session.objects.get(pk=self.root.pk)
        self.debts += row.reply_to is None
        reply_to.take_over(row, debt, now=clock.now())
        queue.accept(session=row, text="relayed", now=clock.now())

    @rule(which=WHICH, status=STATUSES, arrives=st.booleans())
    def works(self, which: int, status: str, arrives: bool) -> None:
        waiting = [row for row in self.all() if queue.wants_turn(row.pk)]
        if waiting:
            self.turn(waiting[which % len(waiting)], status, arrives=arrives)

    def turn(self, session: Session, status: str, *, arrives: bool = False) -> None:
        """One turn; a soft interruption is followed by the turn that it makes room for."""
        before = self.told_by(session)
        if status == "interrupted":
            assert end_turn_softly(session) == ()
            assert self.told_by(session) == before
            status = "completed"
        end_turn(session, "text", status=status, error="why", arrived=["one more"] if arrives else ())
        new = [text for text in self.told_by(session)[len(before) :] if "still running" not in text]
        if not new:
            return
        assert not queue.wants_turn(session.pk), "told before its queue was empty"
        below = Session.objects.filter(trees.below(session.pk), stopped_at=None, archived_at=None)
        assert not [row.pk for row in below if row.pk in self.asked], "told while something below was at work"
        assert len(new) == 1
        if not session.is_root:
            assert session.pk in self.asked, "told twice"
            self.told(session.pk)

    def told_by(self, session: Session) -> list[str]:
        receiver = self.caller if session.is_root else Session.objects.get(pk=session.parent_id)
        return told(receiver, session)

    def told(self, session_id: str) -> None:
        """Its outcome is told, so its parent is asked, unless that is stopped."""
        self.asked.discard(session_id)
        self.is_woken(trees.parent_of(session_id))

    def is_woken(self, session_id: str) -> None:
        if ">" in session_id and queue.wants_turn(session_id):
            self.asked.add(session_id)

    @rule(which=WHICH, by_parent=st.booleans())
    def is_stopped(self, which: int, by_parent: bool) -> None:
        session = self.pick(which)
        was_asked = session.pk in self.asked
        before = self.told_by(session)
        mark_stopped(session.pk, by=session.parent_id if by_parent else "", now=clock.now())  # type: ignore[arg-type]
        self.ended(session, was_asked and not by_parent, before)

    @rule(which=WHICH, by_parent=st.booleans())
    @precondition(lambda self: len(self.all()) > 1)
    def is_archived(self, which: int, by_parent: bool) -> None:
        rows = self.all()[1:]
        session = rows[which % len(rows)]
        was_asked = session.pk in self.asked
        before = self.told_by(session)
        archive_session(session.pk, by=session.parent_id if by_parent else "", now=clock.now())  # type: ignore[arg-type]
        self.ended(session, was_asked and not by_parent, before)

    def ended(self, session: Session, tells: bool, before: list[str]) -> None:
        self.asked = {
            name for name in self.asked if name != session.pk and not trees.is_below(name, session.pk)
        }
        if session.is_root:
            return
        assert len(self.told_by(session)) - len(before) == tells
        if tells:
            self.is_woken(trees.parent_of(session.pk))

    @invariant()
    def who_owes_is_who_was_asked(self) -> None:
        rows = Session.objects.filter(trees.below(self.root.pk), report_due=True)
        assert set(rows.values_list("pk", flat=True)) == self.asked

    @invariant()
    def what_is_stopped_starts_nothing(self) -> None:
        stopped = Session.objects.filter(trees.within(self.root.pk)).exclude(stopped_at=None)
        assert not [row.pk for row in stopped if queue.wants_turn(row.pk)]

    def settle_down(self) -> None:
        """Work until nothing waits: then nobody owes anything, and every relay was told once."""
        for _ in range(500):
            waiting = [row for row in self.all() if queue.wants_turn(row.pk)]
            if not waiting:
                break
            self.turn(waiting[-1], "completed")
        else:
            raise AssertionError("it never comes to rest")
        assert self.asked == set()
        assert Session.objects.get(pk=self.root.pk).reply_to is None
        finals = [text for text in told(self.caller) if "still running" not in text]
        assert len(finals) == self.debts
        assert not QueuedMessage.objects.filter(
            session__in=Session.objects.filter(trees.within(self.root.pk)), worked_at=None, starts_turn=True
        ).exists()


def end_turn_softly(session: Session) -> object:
    """The end of a turn that a message interrupted: nothing is worked off."""
    return settle_turn(session.pk, TurnOutcome("interrupted", ""), max_chars=40, now=clock.now())


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock finds a later millisecond, so that no two stamps collide."""
    moments = itertools.count(1)

    def now() -> datetime:
        return NOW + timedelta(milliseconds=next(moments))

    monkeypatch.setattr(clock, "now", now)


def play(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Tree,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("db", "ticking")
def test_any_order_in_a_tree() -> None:
    play(examples=8, steps=20)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("db", "ticking")
def test_any_order_in_a_tree_for_long() -> None:
    play(examples=2000, steps=60)
