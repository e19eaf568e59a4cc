"""The first page: what waits for a person first, and a cost that doesn't grow."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.events import Usage
from core import clock
from core.db.models import record_event
from evolution import transitions
from evolution.claim import Observed
from evolution.standstill import account_of
from halo_site import ticking
from halo_site.dashboard import EVENTS_SHOWN, SHOWN, read_dashboard
from halo_site.dashboard_tokens import DAYS
from sessions_app.count_tokens import count_tokens
from sessions_app.models import TokensOnDay
from tests.evolution.rows import Rows
from tests.site.people import browser

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    made = Rows.make(tmp_path)
    return Rows(made.workspace, made.user, now=clock.now() - timedelta(minutes=5))


def test_an_empty_house_says_so() -> None:
    shown = browser("reviewer").get("/admin/").content.decode()

    assert "nothing waits" in shown
    assert "halo workspace add PATH" in shown


def test_what_stands_still_comes_first_then_what_failed_then_what_waits_longest(rows: Rows) -> None:
    oldest, newer = rows.in_review(user_hint="first"), rows.in_review(user_hint="second")
    failed = rows.failed_apply()
    stuck, _ = rows.rolling_back()
    observed = Observed.of(stuck)
    transitions.mark_needs_person(observed, account=account_of(stuck, reason="disk full"), now=rows.now)

    found = read_dashboard(now=clock.now())

    assert [item.row.pk for item in found.waiting] == [
        stuck.pk,
        failed.current_runs.get().pk,
        oldest.pk,
        newer.pk,
    ]
    assert found.waiting_total == 4
    assert found.working == []


def test_work_is_shown_with_its_phase_and_how_long_it_takes(rows: Rows) -> None:
    _, claim = rows.claimed(user_hint="Shorter answers")
    transitions.set_phase(claim, phase="score", now=rows.now, done=1, total=3)

    (item,) = read_dashboard(now=rows.now + timedelta(seconds=41)).working

    assert (item.doing, item.steps) == ("score 1/3", ["done", "done", "done", "now"])
    shown = browser("reviewer").get("/admin/dashboard/").content.decode()
    assert "Shorter answers" in shown
    assert "score 1/3" in shown


def test_applies_and_rollbacks_are_named_for_what_they_are(rows: Rows, tmp_path: Path) -> None:
    rows.syncing(rows.approved([rows.in_review(), rows.in_review()]))
    Rows.make(tmp_path, name="other").rolling_back()

    found = {item.kind: (item.doing, item.steps) for item in read_dashboard(now=clock.now()).working}

    assert found == {
        "apply of 2 runs": ("publishing", ["done", "done", "now"]),
        "rollback of one run": ("rolling back", ["now"]),
    }


def test_the_queue_is_counted_and_its_first_rows_are_shown(rows: Rows) -> None:
    waiting = [rows.pending(user_hint=f"number {number}") for number in range(SHOWN + 2)]
    apply = rows.approved()

    found = read_dashboard(now=clock.now())

    assert found.queued_total == SHOWN + 3
    assert [row.pk for row in found.queued] == [apply.pk, *(row.pk for row in waiting[: SHOWN - 1])]
    assert "and 3 more" in browser("reviewer").get("/admin/dashboard/").content.decode()


def test_what_landed_is_counted_by_who_let_it_through(rows: Rows, tmp_path: Path) -> None:
    rows.applied()
    rows.applied(rows.auto_approved())

    landed = read_dashboard(now=clock.now()).landed

    assert (landed.total, landed.by_gate, landed.rolled_back) == (2, 1, 0)
    later = read_dashboard(now=clock.now() + timedelta(days=8)).landed
    assert later.total == 0


def test_a_missing_folder_is_named(rows: Rows) -> None:
    (Path(rows.workspace.path) / ".halo" / "agents" / "writer").mkdir(parents=True)
    assert "1 agent<" in browser("reviewer").get("/admin/dashboard/").content.decode()

    shutil.rmtree(rows.workspace.path)

    assert "folder missing" in browser("reviewer").get("/admin/dashboard/").content.decode()


def test_a_ticker_that_fell_silent_is_no_good_health(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    monkeypatch.setattr(ticking, "_last_tick", [now - timedelta(seconds=3)])
    assert "tick 3 s ago" in [sign.text for sign in read_dashboard(now=now).health.signs]

    monkeypatch.setattr(ticking, "_last_tick", [now - timedelta(minutes=7)])

    health = read_dashboard(now=now).health
    assert not health.good
    assert "no tick for 7 min: nothing that waits is started" in [sign.text for sign in health.signs]


def test_the_last_events_are_told_in_words(rows: Rows) -> None:
    run = rows.in_review()
    for number in range(EVENTS_SHOWN + 5):
        record_event(
            kind="settings:changed", object_id=f"key-{number}", workspace_id=None, payload={}, now=rows.now
        )
    record_event(
        kind="evolution:run_changed",
        object_id=run.pk,
        workspace_id=None,
        payload={"to": "awaiting_review"},
        now=rows.now,
    )

    shown = browser("reviewer").get("/admin/dashboard/").content.decode()

    assert f"run …{run.pk[-4:]} awaiting review" in shown
    assert "setting key-14 changed" in shown
    assert "key-5 " not in shown


def test_tokens_of_the_last_two_weeks_are_drawn_and_told(rows: Rows) -> None:
    now, use = clock.now(), TokensOnDay.Use
    for back, kind, spent in (
        (0, use.CHAT, Usage(900, 100)),
        (0, use.EVOLUTION, Usage(2500, 500)),
        (3, use.CHAT, Usage(400, 0)),
        (20, use.CHAT, Usage(70_000, 0)),
    ):
        moment = now - timedelta(days=back)
        count_tokens(workspace_id=rows.workspace.pk, use=kind, spent=spent, now=moment)

    chart = read_dashboard(now=now).tokens

    today, earlier = chart.bars[-1], chart.bars[-4]
    assert (today.chat, today.evolution, today.chat_height, today.evolution_height) == (1000, 3000, 25, 75)
    assert (earlier.chat, earlier.chat_top, earlier.evolution_height) == (400, 90, 0)
    assert (chart.chat, chart.evolution, chart.most, len(chart.bars)) == (1400, 3000, 4000, DAYS)
    shown = browser("reviewer").get("/admin/dashboard/").content.decode()
    assert "<td>1,000</td><td>3,000</td>" in shown
    assert "70,000" not in shown


def test_the_page_costs_the_same_whatever_there_is(rows: Rows) -> None:
    client = browser("reviewer")
    rows.in_review()
    with CaptureQueriesContext(connection) as few:
        client.get("/admin/dashboard/")
    for _ in range(12):
        rows.in_review()
        rows.pending()
        rows.claimed()

    with CaptureQueriesContext(connection) as many:
        client.get("/admin/dashboard/")

    assert len(many) == len(few)
    assert len(many) <= 18


def test_no_read_goes_through_all_runs_or_applies(rows: Rows) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("query plans are read on SQLite")
    with CaptureQueriesContext(connection) as captured:
        read_dashboard(now=clock.now())

    for query in captured.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + query["sql"])
            plan = " ".join(str(row[3]) for row in cursor.fetchall())
        assert "SCAN evolution_evolution" not in plan, f"{query['sql']}\n{plan}"
