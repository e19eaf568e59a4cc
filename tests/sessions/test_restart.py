"""What a dead process left in the ledger: whom its successor tells what, and that it does so once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from core.db.models import process_values
from core.paths import HaloHome
from core.processes import ProcessIdentity, host_name
from sessions_app import lease, ledger, queue
from sessions_app.logs import SessionLog
from sessions_app.logs import records as make
from sessions_app.models import QueuedMessage, RunningSession, Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.restart import nudge, settle
from tests.sessions.conftest import NOW

pytestmark = pytest.mark.django_db(transaction=True)

DEAD = ProcessIdentity(host_name(), "an earlier boot", 4711, 1)


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    return HaloHome(tmp_path / "home")


def child_of(parent: Session, name: str) -> Session:
    return Session.objects.create(
        id=f"{parent.pk}>{name}",
        workspace=parent.workspace,
        parent=parent,
        agent_id=parent.agent_id,
        agent_name=parent.agent_name,
        access_level=parent.access_level,
        created_at=NOW,
        last_activity_at=NOW,
    )


def left_behind(session: Session, *, epoch: int = 1) -> None:
    """The ledger's row of a process that is dead."""
    RunningSession.objects.create(session=session, epoch=epoch, started_at=NOW, **process_values(DEAD))


def spoken(session: Session, *kinds: str) -> None:
    """A history whose messages are these: ``request`` or ``response``."""
    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    part = {"request": "user-prompt", "response": "text"}
    messages = [{"kind": kind, "parts": [{"part_kind": part[kind], "content": "x"}]} for kind in kinds]
    log.append(raw=[make.message(message) for message in messages])


def settled(session: Session, home: HaloHome) -> Sequence[str]:
    """The nudges in the root's queue after a successor has taken the tree."""
    held = lease.acquire(session.pk)
    try:
        settle(held, home=home, now=NOW)
    finally:
        lease.release(held)
    rows = QueuedMessage.objects.filter(session=session, sender="system").order_by("pk")
    return [row.text for row in rows]


def test_a_root_is_told_that_its_own_turn_was_cut_off(session: Session, agent: Path, home: HaloHome) -> None:
    spoken(session, "request")
    left_behind(session)

    [text] = settled(session, home)

    assert "in the middle of your own turn" in text
    assert "may or may not have had its effect" in text
    assert "a command that was running may still run" in text
    assert "do not start over" in text
    assert "sub-session" not in text
    assert not RunningSession.objects.exists()


def test_an_idle_root_is_told_which_of_its_sub_sessions_were_cut_off(
    session: Session, agent: Path, home: HaloHome
) -> None:
    spoken(session, "request", "response")
    child = child_of(session, "a")
    grandchild = child_of(child, "b")
    for each in (child, grandchild):
        spoken(each, "request")
        left_behind(each)

    [text] = settled(session, home)

    assert "You were idle" in text and "own turn" not in text
    assert f"{child.pk}, {grandchild.pk}." in text
    for each in (child, grandchild):
        each.refresh_from_db()
        assert each.stopped_at == NOW
    session.refresh_from_db()
    assert session.stopped_at is None


def test_a_root_is_told_both_in_one_message(session: Session, agent: Path, home: HaloHome) -> None:
    spoken(session, "request")
    child = child_of(session, "a")
    spoken(child, "request")
    left_behind(session)
    left_behind(child)

    [text] = settled(session, home)

    assert "in the middle of your own turn" in text
    assert f"cut off too and are stopped now: {child.pk}." in text


@pytest.mark.parametrize(
    ("count", "end"), [(10, "s>c08, s>c09."), (11, "s>c08, s>c09 and 1 more."), (25, "s>c09 and 15 more.")]
)
@pytest.mark.parametrize("own", [True, False])
def test_ten_are_named_and_the_rest_is_counted(count: int, end: str, own: bool) -> None:
    text = nudge(own=own, below=[f"s>c{number:02}" for number in range(count)], now=NOW)

    assert end in text
    assert text.count("s>c") == 10


def test_a_turn_whose_answer_stands_in_the_log_was_not_cut_off(
    session: Session, agent: Path, home: HaloHome
) -> None:
    spoken(session, "request", "response")
    left_behind(session)

    assert settled(session, home) == []
    assert not RunningSession.objects.exists()


def test_a_turn_that_had_not_begun_was_not_cut_off(session: Session, agent: Path, home: HaloHome) -> None:
    left_behind(session)
    queue.accept(session=session, text="hello", now=NOW)

    assert settled(session, home) == []
    assert [row.text for row in queue.waiting(session.pk)] == ["hello"]


def test_a_root_is_told_once_whoever_comes_first(session: Session, agent: Path, home: HaloHome) -> None:
    spoken(session, "request")
    left_behind(session, epoch=1)

    assert len(settled(session, home)) == 1
    assert len(settled(session, home)) == 1
    left_behind(session, epoch=1)  # the same death, found again
    assert len(settled(session, home)) == 1
    left_behind(session, epoch=2)
    assert len(settled(session, home)) == 2


def test_what_a_person_stopped_does_not_go_on(session: Session, agent: Path, home: HaloHome) -> None:
    spoken(session, "request")
    left_behind(session)
    Session.objects.filter(pk=session.pk).update(stopped_at=NOW)

    assert settled(session, home) == []
    assert not RunningSession.objects.exists()


def test_an_archived_session_is_told_nothing(session: Session, agent: Path, home: HaloHome) -> None:
    spoken(session, "request")
    left_behind(session)
    Session.objects.filter(pk=session.pk).update(archived_at=NOW)

    assert settled(session, home) == []
    assert not RunningSession.objects.exists()


def test_an_internal_agent_is_told_nothing(session: Session, agent: Path, home: HaloHome) -> None:
    spoken(session, "request")
    left_behind(session)
    (agent / "agent.yaml").write_text("name: Helper\ninternal: true\n")

    assert settled(session, home) == []
    assert not RunningSession.objects.exists()


def test_a_log_that_can_not_be_read_keeps_what_was_left_for_later(
    session: Session, agent: Path, home: HaloHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken(session, "request")
    left_behind(session)

    def broken(_path: Path) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("sessions_app.restart.read_raw_view", broken)
        with pytest.raises(OSError, match="Input/output"):
            settled(session, home)
    assert RunningSession.objects.count() == 1
    assert not QueuedMessage.objects.exists()


def test_a_workspace_that_is_away_keeps_what_was_left_for_later(
    session: Session, agent: Path, home: HaloHome
) -> None:
    """A share that isn't mounted yet: its logs aren't empty, they can't be read."""
    spoken(session, "request")
    left_behind(session)
    halo = session.workspace.paths.halo
    halo.rename(halo.with_name("away"))

    with pytest.raises(FileNotFoundError, match=r"\.halo"):
        settled(session, home)
    assert RunningSession.objects.count() == 1
    assert not QueuedMessage.objects.exists()

    halo.with_name("away").rename(halo)
    [text] = settled(session, home)
    assert "in the middle of your own turn" in text


def test_the_rows_of_a_tree_that_is_at_work_are_no_leftovers(session: Session) -> None:
    held = lease.acquire(session.pk)
    ledger.enter(session.pk, held=held, now=NOW)

    assert ledger.leftover_roots(host=host_name()) == []
    assert ledger.leftover_roots(host="elsewhere") == []

    Session.objects.filter(pk=session.pk).update(lease_expires_at=NOW - timedelta(days=1))
    assert ledger.leftover_roots(host=host_name()) == [session.pk]
    assert ledger.leftover_roots(host="elsewhere") == [], "its workspace is this host's"


def test_a_row_is_left_to_the_successor_who_made_it(session: Session) -> None:
    mine = lease.acquire(session.pk)
    ledger.enter(session.pk, held=mine, now=NOW)
    RunningSession.objects.update(**process_values(DEAD), epoch=2)

    ledger.leave(session.pk, held=mine)

    assert RunningSession.objects.get().epoch == 2
