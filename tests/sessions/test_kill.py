"""A process that works a session dies by SIGKILL at every write: nothing is lost, nothing answered twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from agents import tool_run
from agents.repair import is_sound
from core import atomic, clock
from core.paths import HaloHome
from sessions_app import lease, queue
from sessions_app.engine import Engine
from sessions_app.freeze import frozen_history
from sessions_app.logs import read_session
from sessions_app.models import Session
from sessions_app.open_session import open_session
from sessions_app.places import log_folder, log_leaf, raw_log
from sessions_app.take_batch import take_batch
from tests.sessions.models_in_tests import Script, call_tool

pytestmark = pytest.mark.django_db(transaction=True)

DIES_BY = 60.0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_at_write(number: int, share: float) -> Callable[[], None]:
    """Patch the process it is called in: at its ``number``-th log write only ``share`` of the bytes arrive."""

    def patch() -> None:
        whole = atomic.write_all
        seen = 0

        def write(descriptor: int, data: bytes) -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                whole(descriptor, data[: int(len(data) * share)])
                die()
            whole(descriptor, data)

        atomic.write_all = write

    return patch


def dies_before_marking() -> None:
    queue.mark_worked = lambda *_args, **_kwargs: die()  # type: ignore[assignment,return-value]


def dies_after_marking() -> None:
    marked = queue.mark_worked

    def mark(message_ids: list[int], **values: object) -> int:
        count = marked(message_ids, **values)  # type: ignore[arg-type]
        if message_ids:
            die()
        return count

    queue.mark_worked = mark  # type: ignore[assignment]


def in_a_process_that_dies(work: Callable[[], None], sabotage: Callable[[], None]) -> None:
    """Fork, sabotage, work; asserts that the child was killed."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            tool_run._threads.cache_clear()  # its threads did not come along through the fork
            sabotage()
            work()
        finally:
            os._exit(0)
    deadline = time.monotonic() + DIES_BY
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("The child neither died nor ended.")
        time.sleep(0.005)
    assert os.WIFSIGNALED(status), "the turn ended before the point of death was reached"


def work(session: Session, home: HaloHome) -> None:
    engine = Engine(home=home, threads=1)
    asyncio.run(engine.work(session.pk))
    engine.close()


SABOTAGES = [
    *(
        pytest.param(dies_at_write(number, share), id=f"write-{number}-{share:.0%}")
        for number in range(1, 7)
        for share in (0, 0.6, 1)
    ),
    pytest.param(dies_before_marking, id="before-marking"),
    pytest.param(dies_after_marking, id="after-marking"),
]


@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_a_turn_killed_anywhere_is_taken_up_whole(
    session: Session,
    agent: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sabotage: Callable[[], None],
) -> None:
    home = HaloHome(tmp_path / "home")
    queue.accept(session=session, text="the question", client_id="c1", now=clock.now())
    queue.accept(session=session, text="and another", client_id="c2", now=clock.now())
    Script(call_tool("glob", '{"pattern": "*"}'), "The answer.").install(monkeypatch)
    in_a_process_that_dies(lambda: work(session, home), sabotage)

    before = raw_log(session).read_bytes() if raw_log(session).exists() else b""
    whole = before[: before.rfind(b"\n") + 1]
    assert is_sound(frozen_history(session)), "evolution can freeze what a killed turn left"

    Script("The answer.", "The answer.").install(monkeypatch)
    work(session, home)
    assert queue.accept(session=session, text="again", client_id="c1", now=clock.now()).created is False
    assert queue.waiting(session.pk) == []

    ui, raw = read_session(log_folder(session), log_leaf(session))
    assert raw_log(session).read_bytes().startswith(whole) or is_sound(raw.messages)
    said = str(raw.messages)
    assert [said.count(text) for text in ("the question", "and another")] == [1, 1]
    assert said.count("'The answer.'") == 1, "answered exactly once"
    assert [row["text"] for row in ui.rows if row["role"] == "user"] == ["the question", "and another"]
    answers = [
        row
        for row in ui.rows
        if row["role"] == "assistant" and row["blocks"] and row["blocks"][-1].get("text") == "The answer."
    ]
    assert len(answers) == 1
    assert ui.open_rows == []
    assert len({row["id"] for row in ui.rows}) == len(ui.rows)


def test_a_dead_owner_is_succeeded_without_waiting_for_its_lease(
    session: Session, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = HaloHome(tmp_path / "home")
    queue.accept(session=session, text="hello", now=clock.now())

    def take_and_die() -> None:
        opened = open_session(session.pk, home=home, held=lease.acquire(session.pk))
        assert take_batch(opened)
        die()

    in_a_process_that_dies(take_and_die, lambda: None)
    session.refresh_from_db()
    assert session.lease_host is not None, "the dead process left its lease behind"
    Script("Hi.").install(monkeypatch)
    work(session, home)
    session.refresh_from_db()
    assert (session.output, session.lease_epoch, session.lease_host) == ("Hi.", 2, None)
