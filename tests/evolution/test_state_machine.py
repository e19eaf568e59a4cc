"""Any number of ticks, wrappers, people, crashes and clocks, in any order (invariants 1, 2, 3, 9)."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Count
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from core.db.models import Event
from core.processes import ProcessIdentity, boot_id, host_name
from evolution import transitions
from evolution.claim import Claim, RunSeen
from evolution.errors import ClaimLost, Refused
from evolution.limits import Limits
from evolution.manifest import Manifest
from evolution.models import EvolutionApply, EvolutionRun
from evolution.notify import notify
from evolution.spawn import Order, SpawnFailed
from evolution.states import (
    APPLY_HOLDS_WORKSPACE,
    APPLY_MOVES,
    RUN_MOVES,
    ApplyStatus,
    RunStatus,
)
from evolution.ticker import tick, ticker_lock
from sessions_app.models import QueuedMessage, Session
from tests.evolution.rows import SCORE, START, Rows, seen

LIMITS = Limits(max_concurrent_run=2, max_concurrent_apply=2, max_attempts=2)
MANIFEST = Manifest("", (), "", (), ())
LIVE: set[int] = set()
"""The pids of the wrappers that live in this world."""
HIDDEN: set[int] = set()
"""Those of them that the ticker can neither see nor end: their workspace was moved to another machine."""
NUMBERS = itertools.count(1)
"""Ids count up from the beginning of each play, so that a failure can be replayed."""


@dataclass
class Wrapper:
    """A process that works an order as a real one does: everything it writes, it writes on its claim."""

    order: Order
    pid: int
    status: str
    phase: str = ""

    @property
    def claim(self) -> Claim:
        kind = "run" if self.order.verb == "run" else "apply"
        return Claim(kind, self.order.row_id, self.status, self.order.attempt)  # type: ignore[arg-type]

    @property
    def process(self) -> ProcessIdentity:
        return ProcessIdentity(host_name(), boot_id(), self.pid, 1)


class World(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        global NUMBERS
        NUMBERS = itertools.count(1)
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        self.places = [Rows.make(root, name="one"), Rows.make(root, name="two")]
        self.elsewhere = Rows.make(root, name="three", host="other-machine")
        self.user = self.places[0].user
        self.now: datetime = START
        self.wrappers: list[Wrapper] = []
        self.pids = itertools.count(100_000)
        self.attempts: dict[str, int] = {}
        self.claimed: set[Order] = set()
        self.checked_events = 0
        LIVE.clear()
        HIDDEN.clear()
        self.views_taken: list[RunSeen] = []
        self.begin()

    def teardown(self) -> None:
        try:
            self.everything_comes_to_an_end()
        finally:
            self.folder.cleanup()
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)

    def begin(self) -> None:
        """Every stage of the way is there from the start, so that short plays reach all of it."""
        one, two = self.places
        for rows in self.places:
            rows.pending()
            self.views_taken += [seen(rows.in_review()), seen(rows.in_review())]
        one.applied()
        one.approved()
        one.auto_approved()
        for apply, claim in (two.syncing(two.auto_approved()), one.running_apply()):
            order = Order("apply", apply.pk, claim.attempt)
            self.claimed.add(order)
            self.wrappers.append(Wrapper(order, next(self.pids), apply.status, apply.phase))
            LIVE.add(self.wrappers[-1].pid)
        self.give_sessions()

    def give_sessions(self) -> None:
        """Each run its conversation, so that what lands can be told there."""
        known = set(Session.objects.values_list("pk", flat=True))
        for run in EvolutionRun.objects.exclude(source_session_id__in=known).order_by("id"):
            Session.objects.create(
                id=run.source_session_id,
                workspace_id=run.workspace_id,
                agent_id=run.agent_id,
                agent_name="Writer",
                access_level="full",
                created_at=START,
                last_activity_at=START,
            )

    # -- the world

    @rule(place=st.integers(0, 2), hint=st.sampled_from(["", "shorter"]))
    def enqueue(self, place: int, hint: str) -> None:
        rows = [*self.places, self.elsewhere][place]
        rows.pending(user_hint=hint)
        self.give_sessions()

    @rule(minutes=st.sampled_from([0.1, 1, 4, 6, 13]))
    def time_passes(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(minutes=st.sampled_from([-30, -2, 600]))
    def the_clock_jumps(self, minutes: int) -> None:
        """Set right by hand or by the network; every machine asks the same database for it."""
        self.now += timedelta(minutes=minutes)

    @rule()
    def the_machine_sleeps(self) -> None:
        """Nobody beats meanwhile; who wakes up finds its claim lost, or overdue, and stops."""
        self.now += timedelta(minutes=20)
        LIVE.intersection_update(HIDDEN)

    @rule(how=st.sampled_from(["starts", "starts", "fails", "dies"]), later=st.sampled_from([0, 1, 13]))
    def tick(self, how: str, later: int = 0) -> None:
        self.now += timedelta(minutes=later)
        tick(now=self.now, limits=LIMITS, spawn=lambda order: self.spawn(order, how))
        for at_work in (
            EvolutionRun.objects.filter(status="running"),
            EvolutionApply.objects.filter(status__in=APPLY_HOLDS_WORKSPACE, needs_person__isnull=True),
        ):
            here = at_work.filter(workspace__in=[rows.workspace.pk for rows in self.places])
            assert not here.filter(heartbeat_at__gt=self.now).exists(), "how old it is can't be told"

    def spawn(self, order: Order, how: str) -> None:
        assert order not in self.claimed, "an attempt was given out twice"
        self.claimed.add(order)
        if how == "fails":
            raise SpawnFailed("no memory")
        if how == "starts":
            model = EvolutionRun if order.verb == "run" else EvolutionApply
            row = model._default_manager.get(pk=order.row_id)
            self.wrappers.append(Wrapper(order, next(self.pids), row.status, row.phase))
            LIVE.add(self.wrappers[-1].pid)

    @precondition(lambda self: self.wrappers)
    @rule(data=st.data())
    def a_wrapper_crashes(self, data: st.DataObject) -> None:
        wrapper = data.draw(st.sampled_from(self.wrappers))
        LIVE.discard(wrapper.pid)

    @precondition(lambda self: self.wrappers)
    @rule(data=st.data())
    def a_wrapper_gets_out_of_reach(self, data: st.DataObject) -> None:
        HIDDEN.add(data.draw(st.sampled_from(self.wrappers)).pid)

    @rule()
    def the_machine_restarts(self) -> None:
        LIVE.clear()

    # -- wrappers

    @precondition(lambda self: self.wrappers)
    @rule(data=st.data())
    def a_wrapper_reports(self, data: st.DataObject) -> None:
        wrapper = self.living(data)
        if wrapper is not None:
            self.write(
                wrapper,
                lambda: transitions.write_process(wrapper.claim, process=wrapper.process, now=self.now),
            )

    @precondition(lambda self: self.wrappers)
    @rule(data=st.data())
    def a_wrapper_beats(self, data: st.DataObject) -> None:
        wrapper = self.living(data)
        if wrapper is not None:
            assert transitions.beat(wrapper.claim, now=self.now) == self.is_its_claim(wrapper)

    @precondition(lambda self: self.wrappers)
    @rule(data=st.data(), well=st.booleans(), auto=st.booleans())
    def a_wrapper_goes_on(self, data: st.DataObject, well: bool, auto: bool) -> None:
        wrapper = self.living(data)
        if wrapper is not None:
            self.advance(wrapper, well=well, auto=auto)

    @precondition(lambda self: self.replaced())
    @rule(data=st.data(), well=st.booleans(), auto=st.booleans())
    def a_replaced_wrapper_goes_on(self, data: st.DataObject, well: bool, auto: bool) -> None:
        self.advance(data.draw(st.sampled_from(self.replaced())), well=well, auto=auto)

    def replaced(self) -> list[Wrapper]:
        """Those that live on although their row is another's by now."""
        return [one for one in self.wrappers if one.pid in LIVE and not self.is_its_claim(one)]

    def living(self, data: st.DataObject) -> Wrapper | None:
        """Also the replaced and the cancelled ones: they live until they notice."""
        living = [wrapper for wrapper in self.wrappers if wrapper.pid in LIVE]
        return data.draw(st.sampled_from(living)) if living else None

    def advance(self, wrapper: Wrapper, *, well: bool, auto: bool = False) -> None:
        claim, now = wrapper.claim, self.now
        if wrapper.order.verb == "run":
            self.write(wrapper, lambda: _end_run(claim, well=well, auto=auto, now=now))
        elif wrapper.order.verb == "rollback":
            if wrapper.phase != transitions.PLANNING:
                self.write(wrapper, lambda: transitions.finish_rollback(claim, outcome={}, now=now))
            elif well:
                self.write(wrapper, lambda: transitions.set_phase(claim, phase="rolling_back", now=now))
                wrapper.phase = "rolling_back"
            else:
                self.write(
                    wrapper,
                    lambda: transitions.refuse_rollback(claim, code="conflict", details={}, now=now),
                )
        elif wrapper.status == ApplyStatus.RUNNING:
            if not well:
                self.write(wrapper, lambda: transitions.fail_apply(claim, reason="merge", now=now))
            elif self.write(wrapper, lambda: transitions.checkpoint(claim, now=now)):
                wrapper.status, wrapper.phase = ApplyStatus.SYNCING, "publishing"
        elif wrapper.phase == transitions.RESTORING:
            self.write(wrapper, lambda: transitions.fail_apply(claim, reason="drift", now=now))
        elif well:
            self.write(wrapper, lambda: _land(claim, now=now))
        else:
            self.write(wrapper, lambda: _turn(claim, now=now))
            wrapper.phase = transitions.RESTORING

    def write(self, wrapper: Wrapper, what: Callable[[], object]) -> bool:
        """Whether it was written; exactly when the claim stood, and else nothing has changed."""
        may, before = self.is_its_claim(wrapper), self.everything()
        try:
            what()
        except ClaimLost:
            assert not may
            assert self.everything() == before
            LIVE.discard(wrapper.pid)
            return False
        assert may
        return True

    def is_its_claim(self, wrapper: Wrapper) -> bool:
        """Read off the row without the code under test."""
        model = EvolutionRun if wrapper.order.verb == "run" else EvolutionApply
        row: Any = model._default_manager.get(pk=wrapper.order.row_id)
        is_stuck = model is EvolutionApply and (row.needs_person is not None or row.started_at is None)
        if wrapper.order.verb == "apply" and row.phase == transitions.RESTORING != wrapper.phase:
            return False  # only its attempt tells; turned round means a newer attempt
        return (row.status, row.attempts) == (wrapper.status, wrapper.order.attempt) and not is_stuck

    # -- people, who decide on what they saw a while ago

    @rule()
    def a_person_looks(self) -> None:
        open_ones = EvolutionRun.objects.filter(status__in=["awaiting_review", "approved"]).order_by("id")
        self.views_taken = (self.views_taken + [seen(row) for row in open_ones])[-12:]

    @rule(data=st.data())
    def approve(self, data: st.DataObject) -> None:
        first, second = (data.draw(st.sampled_from(self.views_taken)) for _ in range(2))
        picked = {view.run_id: view for view in (first, second)}
        rows = EvolutionRun.objects.in_bulk(list(picked))
        workspace = rows[first.run_id].workspace_id
        fits = all(_still(rows[key], view) for key, view in picked.items())
        same = all(row.workspace_id == workspace for row in rows.values())
        self.decide(
            fits and same,
            lambda: transitions.approve(
                runs=list(picked.values()), workspace_id=workspace, user=self.user, now=self.now
            ),
        )

    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        view = data.draw(st.sampled_from(self.views_taken))
        fits = _still(EvolutionRun.objects.get(pk=view.run_id), view)
        self.decide(fits, lambda: transitions.reject(run=view, user=self.user, reason="no", now=self.now))

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(list(EvolutionRun.objects.order_by("id"))))
        fits = (row.status, "pending") in RUN_MOVES and row.status != RunStatus.RUNNING
        if row.status == RunStatus.APPROVED:
            assert row.current_apply is not None
            fits = row.current_apply.status in ("failed", "timeout", "cancelled")
        if fits:
            self.decide(
                True,
                lambda: transitions.retry(
                    run_id=row.pk,
                    source=RunStatus(row.status),
                    attempt=row.attempts,
                    hint=row.user_hint,
                    user=self.user,
                    now=self.now,
                ),
            )

    @rule(data=st.data())
    def cancel_run(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(list(EvolutionRun.objects.order_by("id"))))
        fits = row.status in ("pending", "running")
        self.decide(fits, lambda: transitions.cancel_run(run_id=row.pk, user=self.user, now=self.now))

    @precondition(lambda self: EvolutionApply.objects.exists())
    @rule(data=st.data(), what=st.sampled_from(["cancel", "roll back", "try again"]))
    def decide_on_an_apply(self, data: st.DataObject, what: str) -> None:
        apply = data.draw(st.sampled_from(list(EvolutionApply.objects.order_by("id"))))
        if what == "cancel":
            self.decide(
                apply.status in ("pending", "running"),
                lambda: transitions.cancel_apply(apply_id=apply.pk, user=self.user, now=self.now),
            )
        elif what == "try again":
            self.decide(
                apply.needs_person is not None,
                lambda: transitions.try_again(apply_id=apply.pk, user=self.user, now=self.now),
            )
        else:
            busy = EvolutionApply.objects.filter(
                workspace=apply.workspace_id,
                status__in=["pending", "running", "syncing", "rolling_back"],
            ).exists()
            self.decide(apply.status == "applied" and not busy, lambda: self.roll_back(apply))

    def roll_back(self, apply: EvolutionApply) -> None:
        with ticker_lock():
            claim = transitions.begin_rollback(
                apply_id=apply.pk,
                attempts=apply.attempts,
                user=self.user,
                force=False,
                seen=[],
                now=self.now,
            )
        self.spawn(Order("rollback", claim.row_id, claim.attempt), "starts")

    def decide(self, fits: bool, what: Callable[[], object]) -> None:
        before = self.everything()
        try:
            what()
        except Refused:
            assert not fits
            assert self.everything() == before
        else:
            assert fits

    # -- what always holds

    def everything(self) -> list[Any]:
        return [
            list(EvolutionRun.objects.order_by("id").values()),
            list(EvolutionApply.objects.order_by("id").values()),
            Event.objects.count(),
        ]

    @invariant()
    def every_move_is_in_the_table_and_told(self) -> None:
        events = list(Event.objects.order_by("id").filter(id__gt=self.checked_events))
        for event in events:
            self.checked_events = event.pk
            if "from" not in event.payload:
                continue
            is_run = event.kind == "evolution:run_changed"
            pair = (event.payload["from"], event.payload["to"])
            assert pair in (RUN_MOVES if is_run else APPLY_MOVES)
            if is_run and pair[0] in ("rejected", "cancelled", "skipped", "rolled_back"):
                assert event.payload["by"] == self.user.pk, "a machine undid what stood"
            if is_run and pair == ("approved", "awaiting_review"):
                assert EvolutionApply.objects.get(pk=event.payload["apply"]).is_auto
        told = {event.object_id: event.payload["to"] for event in events if "to" in event.payload}
        for model in (EvolutionRun, EvolutionApply):
            for row in model._default_manager.filter(pk__in=told):
                assert row.status == told[row.pk]

    @invariant()
    def attempts_only_grow(self) -> None:
        for model in (EvolutionRun, EvolutionApply):
            for row_id, attempts in model._default_manager.values_list("id", "attempts"):
                assert attempts >= self.attempts.get(row_id, 0)
                self.attempts[row_id] = attempts

    @invariant()
    def limits_are_kept(self) -> None:
        holding = EvolutionApply.objects.filter(status__in=sorted(APPLY_HOLDS_WORKSPACE))
        workspaces = list(holding.values_list("workspace_id", flat=True))
        assert len(workspaces) == len(set(workspaces))
        assert EvolutionRun.objects.filter(status="running").count() <= LIMITS.max_concurrent_run
        at_work = holding.filter(needs_person__isnull=True, started_at__isnull=False)
        assert at_work.exclude(status="rolling_back").count() <= LIMITS.max_concurrent_apply

    @invariant()
    def runs_and_applies_tell_the_same_story(self) -> None:
        stories = {
            "approved": {"pending", "running", "syncing", "failed", "timeout", "cancelled"},
            "applied": {"applied", "rolling_back"},
            "rolled_back": {"rolled_back"},
        }
        for run in EvolutionRun.objects.filter(status__in=stories).select_related("current_apply"):
            assert run.current_apply is not None
            assert run.current_apply.status in stories[run.status]
            if run.status == "approved" and run.current_apply.is_auto:
                assert run.current_apply.status in ("pending", "running", "syncing")
            if run.decided_by_id is None:
                assert run.current_apply.is_auto, "a person's decision carries their name"

    @invariant()
    def no_round_has_more_tries_than_there_are(self) -> None:
        for model in (EvolutionRun, EvolutionApply):
            for row in model._default_manager.all():
                assert row.round_attempts <= LIMITS.max_attempts
                if row.status == "timeout":
                    assert row.round_attempts == LIMITS.max_attempts

    @invariant()
    def what_landed_by_itself_is_told_once(self) -> None:
        messages = dict(QueuedMessage.objects.values_list("client_id").annotate(Count("pk")))
        for apply in EvolutionApply.objects.all():
            landed = apply.is_auto and apply.snapshot_attempt is not None
            landed = landed and apply.status in ("applied", "rolling_back", "rolled_back")
            assert (apply.notified_at is not None) == landed
            assert messages.get(str(apply), 0) == landed

    @invariant()
    def an_unsuccessful_apply_holds_no_run_against_its_reviewers(self) -> None:
        for apply in EvolutionApply.objects.filter(status__in=["failed", "timeout", "cancelled"]):
            held = EvolutionRun.objects.filter(current_apply=apply).values_list("status", flat=True)
            assert set(held) <= (
                {"awaiting_review", "rejected"} if apply.is_auto else {"approved", "rejected"}
            )

    @invariant()
    def what_is_elsewhere_is_left_alone(self) -> None:
        assert not EvolutionRun.objects.filter(workspace=self.elsewhere.workspace, attempts__gt=0).exists()

    def everything_comes_to_an_end(self) -> None:
        """Left alone with wrappers that work, nothing stays in flight but what waits for a person."""
        here = [rows.workspace.pk for rows in self.places]
        for _ in range(120):
            in_flight = EvolutionRun.objects.filter(
                workspace__in=here, status__in=["pending", "running"]
            ).exists()
            applies = EvolutionApply.objects.filter(
                workspace__in=here, status__in=["pending", "running", "syncing", "rolling_back"]
            )
            stuck = set(applies.exclude(needs_person=None).values_list("workspace_id", flat=True))
            if not in_flight and not applies.exclude(workspace__in=stuck).exists():
                return
            self.now += timedelta(minutes=6)
            self.tick("starts")
            for wrapper in list(self.wrappers):
                while wrapper.pid in LIVE and self.is_its_claim(wrapper):
                    self.advance(wrapper, well=True)
                LIVE.discard(wrapper.pid)
        raise AssertionError("something never comes to an end")


def _end_run(claim: Claim, *, well: bool, auto: bool, now: datetime) -> None:
    if not well:
        transitions.fail_run(claim, reason="no", now=now)
    elif auto:
        transitions.pass_gates(claim, score=SCORE, auto_reason="", has_observation=False, now=now)
    else:
        transitions.await_review(claim, score=SCORE, auto_reason="level", has_observation=False, now=now)


def _land(claim: Claim, *, now: datetime) -> None:
    with transaction.atomic():
        transitions.finish_apply(claim, now=now)
        notify(apply=EvolutionApply.objects.get(pk=claim.row_id), manifest=MANIFEST, now=now)


def _turn(claim: Claim, *, now: datetime) -> None:
    if not transitions.begin_restoring(claim, reason="drift:a", drifted=["a"], now=now):
        raise ClaimLost("taken over")


def _still(row: EvolutionRun, view: RunSeen) -> bool:
    if row.attempts != view.attempt:
        return False
    if view.apply_id is None:
        return row.status == RunStatus.AWAITING_REVIEW
    ended = row.current_apply is not None and row.current_apply.status in ("failed", "timeout", "cancelled")
    return row.status == RunStatus.APPROVED and row.current_apply_id == view.apply_id and ended


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of this world live and die by ``LIVE``."""

    def send(self: ProcessIdentity, _signal: int) -> bool:
        was_alive = self.pid in LIVE - HIDDEN
        LIVE.difference_update({self.pid} - HIDDEN)
        return was_alive

    for module in (
        "tests.evolution.rows",
        "evolution.transitions.runs",
        "evolution.transitions.run_decisions",
    ):
        monkeypatch.setattr(f"{module}.new_row_id", lambda: f"{next(NUMBERS):026d}")
    monkeypatch.setattr(ProcessIdentity, "is_alive", lambda self: self.pid in LIVE - HIDDEN)
    monkeypatch.setattr(ProcessIdentity, "send", send)


def play(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        World,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Without the last phase, which traces every line and takes minutes to say what a replay shows.
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink],
        ),
    )


@pytest.mark.timeout(900)  # a failure is made small first; cut off there, it would be called flaky
@pytest.mark.usefixtures("db", "processes")
def test_any_order_of_events() -> None:
    play(examples=30, steps=20)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("db", "processes")
def test_any_order_of_events_for_long() -> None:
    play(examples=3000, steps=80)
