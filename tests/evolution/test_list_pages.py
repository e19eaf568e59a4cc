"""The pages of kept scenarios and the list of applies: who sees and decides what, and paging without a count."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evolution.admin.paging import PER_PAGE
from evolution.artifacts.files import AttemptFiles
from evolution.models import EvolutionApply, RegressionScenario
from tests.evolution.landings import land, scenario_of
from tests.evolution.phase_world import write
from tests.evolution.rows import Rows, facts, fresh
from tests.evolution.test_run_pages import APPLIES, HOSTILE, _client, _text, _turned_away

pytestmark = pytest.mark.django_db

SCENARIOS = "/admin/evolution/regressionscenario/"


def _url(row: RegressionScenario, what: str = "change") -> str:
    return f"{SCENARIOS}{row.pk}/{what}/"


def test_a_reviewer_sees_a_scenario_with_its_texts_and_retires_it(rows: Rows) -> None:
    row, client = scenario_of(land(rows)), _client("reviewer")
    assert "How far?" in _text(client.get(SCENARIOS))
    page = _text(client.get(_url(row)))
    for expected in ("How far?", "Two hours.", "It depends.", "Numbers first.", "Retire"):
        assert expected in page

    answer = client.post(_url(row, "decide"), {"action": "retire", "text": "prices moved"}, follow=True)

    assert "prices moved" in _text(answer) and "Use again" in _text(answer)
    assert fresh(row).retired_by.username == "reviewer"
    assert "Retired: prices moved" in LogEntry.objects.get(object_id=row.pk).change_message
    assert "How far?" not in _text(client.get(SCENARIOS))
    assert "How far?" in _text(client.get(SCENARIOS, {"state": "retired"}))

    client.post(_url(row, "decide"), {"action": "restore"})
    assert fresh(row).retired_at is None


@pytest.mark.parametrize("role", ["anonymous", "plain", "viewer"])
@pytest.mark.parametrize("action", ["retire", "restore"])
def test_whoever_may_not_review_decides_nothing(rows: Rows, role: str, action: str) -> None:
    row = scenario_of(land(rows))
    before = facts()

    answer = _client(role).post(_url(row, "decide"), {"action": action})

    assert _turned_away(answer) or answer.status_code == 403
    assert facts() == before and not LogEntry.objects.exists()
    if role == "viewer":
        assert "Retire" not in _text(_client(role).get(_url(row)))


def test_deciding_twice_is_a_conflict_and_is_shown(rows: Rows) -> None:
    row, client = scenario_of(land(rows)), _client("reviewer")
    client.post(_url(row, "decide"), {"action": "retire"})
    before = facts()

    answer = client.post(_url(row, "decide"), {"action": "retire"})

    assert answer.status_code == 409 and "retired already" in _text(answer)
    assert facts() == before
    assert client.post(_url(row, "decide"), {"action": "burn"}).status_code == 404
    assert client.get(_url(row, "decide")).status_code == 405


def test_hostile_texts_are_shown_as_text(rows: Rows) -> None:
    row = scenario_of(
        land(
            rows,
            target=HOSTILE,
            test_message=HOSTILE,
            original_message=HOSTILE,
            change=HOSTILE,
            baseline=HOSTILE,
            answer=HOSTILE,
        )
    )
    for page in (SCENARIOS, _url(row)):
        text = _text(_client("reviewer").get(page))
        assert "<script>alert" not in text and "<img src=x" not in text and "\u202e" not in text
        assert "alert(1)" in html.unescape(text)


def test_the_apply_page_says_how_kept_scenarios_went_and_leads_to_them(rows: Rows) -> None:
    row = scenario_of(land(rows))
    apply = rows.failed_apply()
    files = AttemptFiles(rows.workspace.paths.evolution.apply_attempt(apply.pk, apply.attempts))
    found = [
        {"scenario_id": row.pk, "run_id": row.run_id, "state": "failed", "reason": "behavior is 10"},
        {"scenario_id": "0" * 26, "run_id": row.run_id, "state": "not_run", "reason": "the hour was over"},
        {"scenario_id": "../../x", "run_id": row.run_id, "state": "held"},
    ]
    write(files.kept_scenarios, json.dumps(found))

    page = _text(_client("reviewer").get(f"{APPLIES}{apply.pk}/change/"))

    assert "behavior is 10" in page and "the hour was over" in page and "or retire it" in page
    assert f'href="{_url(row)}"' in page and "../../x" not in page


def test_kept_folders_are_shown_to_a_reviewer(rows: Rows) -> None:
    apply, client = rows.failed_apply(), _client("viewer")
    EvolutionApply.objects.filter(pk=apply.pk).update(
        kept_dirs=["skills/dig"], rollback_outcome={"keptDirs": ["skills/dag"], "kept": ["evo/history/x"]}
    )
    page = _text(client.get(f"{APPLIES}{apply.pk}/change/"))
    assert "skills/dig" in page and "they still hide the global ones" in page
    assert "folders kept (they hold other files" in page and "skills/dag" in page
    assert "texts that made way" in page


def _make_applies(rows: Rows, count: int) -> list[EvolutionApply]:
    return [rows.failed_apply() for _ in range(count)]


def _shown(text: str) -> list[str]:
    return re.findall(r"(apply-[0-9a-z]{26})</span>", text)


def test_applies_are_paged_by_cursor_in_both_directions(rows: Rows) -> None:
    applies = [str(apply) for apply in reversed(_make_applies(rows, PER_PAGE + 3))]
    client = _client("viewer")

    first = _text(client.get(APPLIES))
    older = re.search(r'href="(\?[^"]*before=[^"]*)" rel="next"', first)
    assert older is not None and _shown(first) == applies[:PER_PAGE]
    second = _text(client.get(APPLIES + html.unescape(older[1])))
    newer = re.search(r'href="(\?[^"]*after=[^"]*)" rel="prev"', second)

    assert newer is not None and _shown(second) == applies[PER_PAGE:]
    assert _shown(_text(client.get(APPLIES + html.unescape(newer[1])))) == applies[:PER_PAGE]


def test_a_page_of_applies_counts_nothing_and_needs_few_queries(rows: Rows) -> None:
    _make_applies(rows, 4)
    client = _client("viewer")
    client.get(APPLIES)

    with CaptureQueriesContext(connection) as few:
        client.get(APPLIES)
    _make_applies(rows, PER_PAGE)
    with CaptureQueriesContext(connection) as many:
        client.get(APPLIES)

    assert len(many) == len(few) <= 15
    assert not [query for query in many.captured_queries if "COUNT(" in query["sql"].upper()]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, 3),
        ({"status": "failed"}, 1),
        ({"auto": "1"}, 1),
        ({"person": "1"}, 0),
        ({"archived": "only"}, 0),
        ({"workspace": "x"}, 0),
        ({"workspace": "9" * 30}, 0),
        ({"q": "drift"}, 1),
        ({"q": "\0"}, 0),
        ({"before": "\0"}, 3),
        ({"status": "nonsense"}, 0),
    ],
)
def test_applies_are_filtered(rows: Rows, query: dict[str, Any], count: int) -> None:
    rows.failed_apply(), rows.auto_approved(), rows.approved()
    assert len(_shown(_text(_client("viewer").get(APPLIES, query)))) == count
