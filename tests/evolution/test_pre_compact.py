"""The trigger at a compaction: from L1, for root sessions that owe nothing to cron; nothing happens otherwise."""

from __future__ import annotations

import pytest

from core.paths import halo_home
from evolution.models import EvolutionRun
from sessions_app.create import create_session
from sessions_app.logs import records
from sessions_app.logs.session_log import SessionLog
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.turn_compacted import turn_compacted
from tests.evolution.phase_world import conversation
from tests.evolution.test_enqueue import NOW, home, workspace  # noqa: F401 - fixtures
from workspaces.models import Workspace


@pytest.fixture
def session(workspace: Workspace) -> Session:  # noqa: F811
    session = create_session(
        workspace=workspace, agent_id="guide", agent_name="Guide", access_level="full", now=NOW
    )
    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    log.append(raw=[records.message(message) for message in conversation()])
    return session


def set_level(level: str, *, pre_compact: bool = True) -> None:
    file = halo_home().settings_file
    file.parent.mkdir(parents=True, exist_ok=True)
    trigger = "true" if pre_compact else "false"
    file.write_text(f"general: {{evolution: {{level: {level}, triggers: {{pre_compact: {trigger}}}}}}}\n")
    file.chmod(0o600)


@pytest.mark.parametrize("level", ["L1", "L2", "L3"])
def test_a_compacted_session_is_examined(session: Session, level: str) -> None:
    set_level(level)
    turn_compacted(session, now=NOW)
    run = EvolutionRun.objects.get()
    assert (run.source_session_id, run.trigger_kind, run.user_hint) == (session.pk, "pre-compact", "")
    assert run.requested_by is None
    snapshot = session.workspace.paths.evolution.run(run.pk) / "source-snapshot.json"
    assert "user-prompt" in snapshot.read_text()
    turn_compacted(session, now=NOW)
    assert EvolutionRun.objects.count() == 1, "the one that waits is enough"


def test_at_L0_nothing_is_asked_for(session: Session) -> None:
    set_level("L0")
    turn_compacted(session, now=NOW)
    assert not EvolutionRun.objects.exists()


def test_the_trigger_can_be_switched_off(session: Session) -> None:
    set_level("L3", pre_compact=False)
    turn_compacted(session, now=NOW)
    assert not EvolutionRun.objects.exists()


def test_a_turn_for_cron_teaches_nothing_one_for_a_relay_does(session: Session) -> None:
    set_level("L1")
    Session.objects.update(reply_to={"cron": "7"})
    turn_compacted(session, now=NOW)
    assert not EvolutionRun.objects.exists()
    Session.objects.update(reply_to={"relay": {"workspace": "1", "session": "x"}})
    turn_compacted(session, now=NOW)
    assert EvolutionRun.objects.count() == 1


def test_a_sub_session_is_left_alone(session: Session) -> None:
    set_level("L1")
    child = Session.objects.get()
    child.pk, child.parent = f"{session.pk}>abcdefgh12345678", session
    child.save(force_insert=True)
    turn_compacted(child, now=NOW)
    assert not EvolutionRun.objects.exists()


def test_a_refusal_is_no_failure(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    set_level("L1")
    log_folder(session).joinpath(f"{log_leaf(session)}.raw.jsonl").unlink()
    turn_compacted(session, now=NOW)
    assert not EvolutionRun.objects.exists()
    assert "No run for compacted session" in caplog.text


def test_a_summary_is_nobodys_words() -> None:
    from agents import history as wire
    from evolution.conversation import tool_flow, user_texts

    also = wire.user_message("[2026-01-31T09:30:00.000Z] do it")["parts"]
    message = wire.summary_message("They asked for X.", of=3, kept=0, also=also)
    assert user_texts(message) == ["do it"]
    flow = tool_flow([message])
    assert "## 1. System\n\nThey asked for X." in flow
    assert "## 1. User\n\ndo it" in flow
