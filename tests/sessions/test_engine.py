"""Turns of a session: accepted, worked once, saved, stopped, taken over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from pydantic_ai.messages import ModelMessage

from agents.events import AgentEvent, ToolCall
from core import clock
from core.db.models import Event
from core.paths import HaloHome
from sessions_app import lease, queue
from sessions_app.engine import Engine
from sessions_app.errors import SessionHeld, SessionUnreadable
from sessions_app.logs import UiView, read_session
from sessions_app.models import QueuedMessage, Session
from sessions_app.open_session import open_session
from sessions_app.places import log_folder, log_leaf, raw_log, ui_log
from sessions_app.take_batch import take_batch
from tests.sessions.models_in_tests import Script, call_tool

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    return HaloHome(tmp_path / "home")


@pytest.fixture
def engine(home: HaloHome) -> Iterator[Engine]:
    engine = Engine(home=home)
    yield engine
    engine.close()


def say(session: Session, text: str, client_id: str = "") -> int:
    return queue.accept(session=session, text=text, client_id=client_id, now=clock.now()).message_id


def view(session: Session) -> UiView:
    return read_session(log_folder(session), log_leaf(session))[0]


def texts(session: Session) -> list[str]:
    return [
        row["text"] if "text" in row else "+".join(b.get("text", b["type"]) for b in row["blocks"])
        for row in view(session).rows
    ]


def work(engine: Engine, session: Session) -> str:
    outcome = asyncio.run(engine.work(session.pk))
    return outcome.status if outcome else ""


def waiting(session: Session) -> list[str]:
    return [row.text for row in queue.waiting(session.pk)]


def test_a_message_is_answered_and_everything_is_saved(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script("Hello Ann.").install(monkeypatch)
    say(session, "Hello, I am Ann")
    assert work(engine, session) == "completed"
    assert texts(session) == ["Hello, I am Ann", "Hello Ann."]
    session.refresh_from_db()
    assert (session.title, session.output, session.exchange_count) == ("Hello, I am Ann", "Hello Ann.", 1)
    assert session.context_tokens > 0
    assert session.lease_host is None
    assert waiting(session) == []
    assert "] Hello, I am Ann" in str(script.seen[0][-1])
    assert Event.objects.filter(kind="session:changed", object_id=session.pk).count() == 2


def test_several_waiting_messages_are_one_turn(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script("Both.").install(monkeypatch)
    say(session, "one")
    say(session, "two")
    assert work(engine, session) == "completed"
    assert texts(session) == ["one", "two", "Both."]
    assert len(script.seen) == 1


def test_a_message_that_comes_while_busy_interrupts_softly_and_is_folded_in(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(call_tool("glob", '{"pattern": "*"}'), "Answer to both.").install(monkeypatch)
    say(session, "first")

    def watch(event: AgentEvent) -> None:
        if isinstance(event, ToolCall):
            sender = Thread(target=say, args=(session, "second"))
            sender.start()
            sender.join()
            engine.interrupt_softly(session.pk)

    asyncio.run(engine.work(session.pk, watch=watch))
    assert texts(session)[-1] == "Answer to both."
    assert [row["text"] for row in view(session).rows if row["role"] == "user"] == ["first", "second"]
    assert len(script.seen) == 2
    assert waiting(session) == []


def test_stop_aborts_the_turn_and_folds_what_waits(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(_messages: object) -> str:
        say_later.append(1)
        return "never finished"

    say_later: list[int] = []
    Script(call_tool("glob", '{"pattern": "*"}'), slow).install(monkeypatch)
    say(session, "first")

    def watch(event: AgentEvent) -> None:
        if isinstance(event, ToolCall):
            assert engine.stop(session.pk)

    async def scenario() -> str:
        outcome = await engine.work(session.pk, watch=watch)
        return outcome.status if outcome else ""

    assert asyncio.run(scenario()) == "aborted"
    say(session, "waits")
    assert waiting(session) == ["waits"]
    assert say_later == []
    assert not engine.stop(session.pk), "nothing runs any more"
    block = view(session).rows[1]["blocks"][0]
    assert block["result"]["interrupted"] is True


def test_an_agent_that_can_not_run_answers_with_the_reason(session: Session, engine: Engine) -> None:
    say(session, "hello")
    assert work(engine, session) == "failed"
    assert "There is no agent 'helper'" in texts(session)[-1]
    assert waiting(session) == []


def test_a_session_held_elsewhere_keeps_the_message_waiting(session: Session, engine: Engine) -> None:
    other = lease.acquire(session.pk)
    say(session, "hello")
    with pytest.raises(SessionHeld):
        work(engine, session)
    assert waiting(session) == ["hello"]
    assert not raw_log(session).exists()
    lease.release(other)


def test_a_message_in_the_log_is_not_put_there_again_after_a_crash(
    session: Session, agent: Path, engine: Engine, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(session, "hello")
    crashed = open_session(session.pk, home=home, held=lease.acquire(session.pk))
    assert take_batch(crashed)
    lease.release(crashed.held)

    script = Script("Once.").install(monkeypatch)
    assert work(engine, session) == "completed"
    assert texts(session) == ["hello", "Once."]
    assert len(script.seen) == 1


def test_a_message_that_was_answered_before_a_crash_is_not_answered_again(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script("Once.").install(monkeypatch)
    say(session, "hello", client_id="c")
    work(engine, session)
    QueuedMessage.objects.update(worked_at=None)  # the process died between the log and the row
    assert work(engine, session) == ""
    assert len(script.seen) == 1
    assert waiting(session) == []


def test_a_log_that_can_not_be_written_ends_the_work_and_keeps_the_message(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    say(session, "hello")
    with monkeypatch.context() as patch:
        patch.setattr("core.atomic.write_all", full)
        with pytest.raises(SessionUnreadable, match="No space left"):
            work(engine, session)
    assert waiting(session) == ["hello"]
    Script("Now.").install(monkeypatch)
    assert work(engine, session) == "completed"
    assert texts(session) == ["hello", "Now."]


def test_a_log_that_can_not_be_mended_keeps_the_message(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script("Hello.").install(monkeypatch)
    log_folder(session).mkdir(parents=True)
    raw_log(session).write_bytes(b"\0\0\0\n")
    say(session, "hello")

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("core.atomic.write_all", full)
        with pytest.raises(SessionUnreadable, match="No space left"):
            work(engine, session)
    assert waiting(session) == ["hello"]
    assert lease.live_holder(session.pk) is None
    assert work(engine, session) == "completed"


@pytest.mark.parametrize("mount_point_stays", [False, True])
def test_a_vanished_workspace_keeps_the_message_and_nothing_is_put_in_its_place(
    session: Session,
    agent: Path,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    mount_point_stays: bool,
) -> None:
    script = Script("Hello.", "Hello again.").install(monkeypatch)
    say(session, "hello")
    work(engine, session)
    root = session.workspace.paths.root
    away = root.rename(root.with_name("away"))
    if mount_point_stays:
        root.mkdir()
    say(session, "still there?")
    with pytest.raises(SessionUnreadable, match="is gone"):
        work(engine, session)
    assert waiting(session) == ["still there?"]
    assert not root.exists() or not list(root.iterdir())
    if mount_point_stays:
        root.rmdir()
    away.rename(root)
    assert work(engine, session) == "completed"
    assert texts(session) == ["hello", "Hello.", "still there?", "Hello again."]
    assert len(script.seen) == 2


def test_an_answer_that_no_database_takes_as_it_is_still_ends_its_turn(
    session: Session, agent: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script("a\0b\ud800c").install(monkeypatch)
    say(session, "hello")
    assert work(engine, session) == "completed"
    session.refresh_from_db()
    assert session.output == "a\ufffdb\ufffdc"
    assert waiting(session) == []


def test_a_lease_lost_in_the_middle_leaves_the_session_to_its_successor(
    session: Session, agent: Path, engine: Engine, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_messages: list[ModelMessage] | object) -> str:
        with raw_log(session).open("ab") as stream:
            stream.write(b'{"t":"msg","e":99,"n":1,"m":{"kind":"request","parts":[]}}\n')
        return "late answer"

    Script(lose).install(monkeypatch)
    say(session, "hello")
    with pytest.raises(SessionUnreadable, match="no longer works"):
        work(engine, session)
    assert waiting(session) == ["hello"]
    note = view(session).rows[-1]
    assert note["kind"] == "late"
    assert "late answer" in str(note["kept"])


def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Which log reached the disk, and how many lines it had by then."""
    found: list[tuple[str, int]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.suffix == ".jsonl":
            found.append((path.name.split(".")[1], path.read_bytes().count(b"\n")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    return found


@pytest.mark.parametrize("policy", ["", "turn", "always", "never"])
def test_what_has_to_reach_the_disk_by_which_setting(
    session: Session, agent: Path, home: HaloHome, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    if policy:
        home.settings_file.parent.mkdir(parents=True)
        home.settings_file.write_text(f"general: {{session: {{fsync: {policy}}}}}\n")
    Script(call_tool("glob", '{"pattern": "*"}'), "None.").install(monkeypatch)
    say(session, "Which files are there?")
    found = synced(monkeypatch)
    engine = Engine(home=home)
    assert work(engine, session) == "completed"
    engine.close()

    lines = {name: len(file.read_bytes().splitlines()) for name, file in logs_of(session).items()}
    ends = [("raw", lines["raw"]), ("ui", lines["ui"])]
    accepted = [("raw", 1), ("ui", 1)]
    match policy:
        case "never":
            assert found == []
        case "always":
            assert found[:2] == accepted and found[-2:] == ends
            assert {count for name, count in found if name == "raw"} == set(range(1, lines["raw"] + 1))
        case _:
            assert found == [*accepted, *ends], "what was accepted, and the end of the turn"


def logs_of(session: Session) -> dict[str, Path]:
    return {"raw": raw_log(session), "ui": ui_log(session)}
