"""A session whose history is compacted: its logs, its rows, who is told, and that it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from agents import history as wire
from core import clock
from core.paths import HaloHome
from sessions_app import queue, turn_compacted
from sessions_app.engine import Engine
from sessions_app.logs import read_session
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from tests.sessions.models_in_tests import Script

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "word " * 300


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(home=HaloHome(tmp_path / "home"))
    yield engine
    engine.close()


@pytest.fixture
def small(agent: Path, session: Session) -> Path:
    """The agent's context is full after two long messages."""
    (agent / "agent.yaml").write_text("name: Helper\ncontext: {maxTokens: 1000}\n")
    (session.workspace.paths.halo / "settings.yaml").write_text("general: {compact: {keep_messages: 1}}\n")
    return agent


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(session, messages in its raw log) of each call of the hook."""
    calls: list[tuple[str, int]] = []

    def hook(session: Session, now: datetime) -> None:
        calls.append((session.pk, len(read_session(log_folder(session), log_leaf(session))[1].messages)))

    monkeypatch.setitem(turn_compacted._hooks, "test", hook)
    return calls


def say(engine: Engine, session: Session, text: str) -> str:
    queue.accept(session=session, text=text, now=clock.now())
    outcome = asyncio.run(engine.work(session.pk))
    assert outcome is not None
    return outcome.status


def test_the_log_is_rewritten_and_the_conversation_goes_on(
    session: Session,
    small: Path,
    engine: Engine,
    told: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script("One.", "Two.", "They asked twice.", "Three.", "Four.").install(monkeypatch)
    assert say(engine, session, f"first {LONG}") == "completed"
    assert say(engine, session, f"second {LONG}") == "completed"
    assert told == []
    assert say(engine, session, f"third {LONG}{LONG}") == "completed"
    ui, raw = read_session(log_folder(session), log_leaf(session))
    assert [message["kind"] for message in raw.messages] == ["request", "request", "response"]
    assert "They asked twice." in wire.message_text(raw.messages[0]) and wire.is_summary(raw.messages[0])
    shown = [row.get("text", "") or row["blocks"][0]["text"] for row in ui.rows]
    assert [text.split()[0] for text in shown] == [
        "first", "One.", "second", "Two.", "third", "Compacting", "Compacted:", "Three.",
    ]  # fmt: skip
    assert not any(row.get("lost") or row.get("restored") for row in ui.rows)
    assert told == [(session.pk, 3)], "once, with the history as it stands then"
    assert say(engine, session, "fourth") == "completed"
    assert "They asked twice." in str(script.seen[-1]) and "first word" not in str(script.seen[-1])
    assert len(told) == 1, "a turn that didn't compact tells nobody"


def test_a_hook_that_fails_spoils_no_turn(
    session: Session, small: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(session: Session, now: datetime) -> None:
        raise RuntimeError("no")

    monkeypatch.setitem(turn_compacted._hooks, "test", fail)
    Script("One.", "Two.", "Summary.", "Three.").install(monkeypatch)
    for text in (f"first {LONG}", f"second {LONG}", f"third {LONG}{LONG}"):
        assert say(engine, session, text) == "completed"
    assert Session.objects.get().exchange_count == 3


def test_the_message_being_worked_on_keeps_its_row_when_it_moves_into_the_summary(
    session: Session, small: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.compaction import cut
    from agents.events import HistoryReplaced
    from sessions_app.logs import SessionLog, TurnRecorder

    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    call = wire.tool_call_part(call_id="c", tool="t", arguments={})
    result = wire.tool_result_part(call_id="c", tool="t", text="r")
    history = [
        wire.user_message("old"),
        wire.reply_message([wire.text_part("x")]),
        wire.user_message("asked"),
        wire.reply_message([call]),
        {"kind": "request", "parts": [result]},
    ]
    recorder = TurnRecorder(log, list(history), [("a",), ("b",), ("c",), ("d",), ("d",)])
    found = cut(history, keep=2)
    assert found is not None
    recorder.record(HistoryReplaced(tuple(found.joined("S.")), "compacted", compacted=True))
    assert recorder.compacted
    assert [tuple(rows) for rows in recorder.rows] == [("c",), ("d",), ("d",)]
    ui, _ = log.load()
    assert next((row["id"], row.get("text", "")) for row in ui.rows) == ("c", "asked")


def test_on_request_without_a_turn(
    session: Session,
    small: Path,
    engine: Engine,
    told: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script("One.", "Two.", "They said hello.", "Three.").install(monkeypatch)
    assert asyncio.run(engine.compact(session.pk)) == "nothing_to_compact"
    say(engine, session, "first")
    say(engine, session, "second")
    before = Session.objects.get()
    assert asyncio.run(engine.compact(session.pk)) == "compacted"
    after = Session.objects.get()
    assert told == [(session.pk, 2)], "the summary with the message it was about, and the last answer"
    assert after.exchange_count == before.exchange_count == 2
    assert after.lease_host is None
    assert say(engine, session, "third") == "completed"
    assert "They said hello." in str(script.seen[-1]) and "second" in str(script.seen[-1])
    assert asyncio.run(engine.work(session.pk)) is None, "nothing waits"


def test_a_compaction_that_fails_stands_in_the_log_and_changes_nothing(
    session: Session, small: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script("One.", "Two.").install(monkeypatch)
    say(engine, session, "first")
    say(engine, session, "second")
    raw = log_folder(session) / f"{log_leaf(session)}.raw.jsonl"
    before = raw.read_bytes()
    (small / "agent.yaml").write_text("name: Helper\nmodel: {provider: openai}\n")
    assert asyncio.run(engine.compact(session.pk)) == "failed"
    assert raw.read_bytes() == before
    row = read_session(log_folder(session), log_leaf(session))[0].rows[-1]
    assert row["kind"] == "error" and "unchanged" in row["text"] and "openai" in row["text"]


def test_a_stop_ends_a_compaction(
    session: Session, small: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Script("One.", "Two.", "Never used.").install(monkeypatch)
    say(engine, session, "first")
    say(engine, session, "second")

    def stop(event: object) -> None:
        engine.stop(session.pk)

    assert asyncio.run(engine.compact(session.pk, watch=stop)) == "stopped"
    texts = [row.get("text", "") for row in read_session(log_folder(session), log_leaf(session))[0].rows]
    assert texts[-1] == "Compaction was stopped; the conversation is unchanged."
