"""Two roots that owe each other their outcome end at one instant: neither waits for the other for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from agents.events import Usage
from agents.turn import TurnOutcome
from core import clock
from core.paths import HaloHome
from sessions_app import lease, queue, stop_tree
from sessions_app.create import create_session
from sessions_app.finish_turn import finish_turn
from sessions_app.models import Session
from sessions_app.open_session import open_session
from sessions_app.take_batch import take_batch
from tests.sessions.conftest import NOW
from tests.sessions.trees import told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(120)]

MEET_SEC = 1.0


@pytest.fixture
def pair(session: Session, agent: Path) -> tuple[Session, Session]:
    """Each owes its outcome to the other, and a message waits in each."""
    other = create_session(
        workspace=session.workspace, agent_id="helper", agent_name="H", access_level="full", now=NOW
    )
    for one, two in ((session, other), (other, session)):
        debt = {"relay": {"workspace": two.workspace_id, "session": two.pk}}
        Session.objects.filter(pk=one.pk).update(reply_to=debt)
        queue.accept(session=one, text="go", now=NOW)
    return session, other


def meet_after(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, gate: threading.Barrier) -> None:
    """Whoever has called it waits for the other, for a second: the other may be waiting for a row."""
    whole = getattr(module, name)

    def and_meet(*args: Any, **values: Any) -> Any:
        result = whole(*args, **values)
        with suppress(threading.BrokenBarrierError):
            gate.wait(MEET_SEC)
        return result

    monkeypatch.setattr(module, name, and_meet)


def in_thread(task: Callable[[], object]) -> None:
    try:
        task()
    finally:
        connections.close_all()


def both(*tasks: Callable[[], object]) -> None:
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(in_thread, task) for task in tasks]:
            done.result(60)


def test_two_turns_end(
    pair: tuple[Session, Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    for row in pair:
        held = lease.acquire(row.pk)
        opened.append(open_session(row.pk, home=HaloHome(tmp_path / "home"), held=held))
        assert take_batch(opened[-1])
    meet_after(monkeypatch, lease, "confirm", threading.Barrier(2))
    outcome = TurnOutcome("completed", "Done.")
    finish = partial(finish_turn, outcome=outcome, spent=Usage(0, 0), context_tokens=0, now=clock.now())

    both(*(partial(finish, one) for one in opened))

    # Who was second has the first one's outcome in its queue by then: an interim, and the debt stays.
    heard = sorted(text for one, two in (pair, pair[::-1]) for text in told(one, two))
    assert ["status completed" in text for text in heard].count(True) == 1
    assert ["status still running" in text for text in heard].count(True) == 1
    assert Session.objects.exclude(reply_to=None).count() == 1
    for each in opened:
        lease.release(each.held)


def test_two_stops(pair: tuple[Session, Session], monkeypatch: pytest.MonkeyPatch) -> None:
    meet_after(monkeypatch, stop_tree, "quieten", threading.Barrier(2))

    both(*(partial(stop_tree.mark_stopped, row.pk, now=clock.now()) for row in pair))

    assert [len(told(one, two)) for one, two in (pair, pair[::-1])] == [1, 1]
    assert not Session.objects.exclude(reply_to=None).exists()
