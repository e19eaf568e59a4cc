"""The ticker over 100,000 finished rows: how many queries it asks, and that none of them reads them all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.db.models import process_values
from core.ids import new_row_id
from core.processes import ProcessIdentity
from evolution.models import EvolutionApply, EvolutionRun
from evolution.spawn import Order
from evolution.states import APPLY_FINAL, RUN_FINAL, RunStatus
from evolution.ticker import tick
from tests.evolution.rows import Rows, minutes

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

FINISHED = 100_000
_READS = re.compile(r'^(SELECT|UPDATE) .*"evolution_evolution(run|apply)"', re.DOTALL)


@pytest.fixture
def many(rows: Rows) -> Rows:
    """Rows as a long life leaves them; played one by one they would take hours, so the database copies them."""
    for status in sorted(RUN_FINAL - {RunStatus.APPLIED}):
        EvolutionRun.objects.create(
            id=new_row_id(),
            workspace=rows.workspace,
            source_session_id="session",
            agent_id="writer",
            trigger_kind="note",
            source_access="full",
            status=status,
            attempts=1,
            created_at=rows.now,
            finished_at=rows.now,
        )
    for status in sorted(APPLY_FINAL):
        EvolutionApply.objects.create(
            id=new_row_id(),
            workspace=rows.workspace,
            status=status,
            snapshot_attempt=1,
            attempts=1,
            created_at=rows.now,
            finished_at=rows.now,
        )
    for model in (EvolutionRun, EvolutionApply):
        while model._default_manager.count() < FINISHED // 2:
            _double(model)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return rows


def _double(model: type[EvolutionRun | EvolutionApply]) -> None:
    columns = [f'"{field.column}"' for field in model._meta.concrete_fields if not field.primary_key]
    new_id = "lower(hex(randomblob(13)))"
    if connection.vendor == "postgresql":
        new_id = "substr(md5(random()::text), 1, 26)"
    listed, table = ", ".join(columns), model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} (id, {listed}) SELECT {new_id}, {listed} FROM {table}")  # noqa: S608


def _started(order: Order) -> None:
    """A wrapper that takes its time to report."""


def _passes(many: Rows) -> Iterator[tuple[str, CaptureQueriesContext]]:
    """Passes in every state of work: idle, one at work, and rows to settle, resume and claim."""
    now = many.now
    with CaptureQueriesContext(connection) as idle:
        tick(now=now, spawn=_started)
    yield "idle", idle

    run, claim = many.claimed()
    claim.rows().update(heartbeat_at=now, **process_values(ProcessIdentity.current()))
    with CaptureQueriesContext(connection) as busy:
        report = tick(now=now + minutes(1), spawn=_started)
    assert report.started == report.settled == ()
    yield "busy", busy
    EvolutionRun.objects.filter(pk=run.pk).update(heartbeat_at=now + timedelta(hours=10))

    many.pending(source_session_id="waits"), many.approved()
    many.syncing()
    with CaptureQueriesContext(connection) as working:
        tick(now=now + timedelta(hours=1), spawn=_started)
    yield "working", working


def test_a_tick_asks_at_most_ten_queries_where_there_is_nothing_to_move(many: Rows) -> None:
    asked = {name: len(queries) for name, queries in _passes(many)}
    assert asked["idle"] == 2 and asked["busy"] <= 10, asked


def test_no_query_of_a_tick_reads_through_the_finished_rows(many: Rows) -> None:
    seen = 0
    for name, queries in _passes(many):
        for query in queries.captured_queries:
            if _READS.match(query["sql"]):
                plan = _plan(query["sql"])
                assert not _full_scans(plan), f"{name}: {query['sql']}\n{plan}"
                seen += 1
    assert seen > 12


def test_a_list_and_a_page_by_cursor_read_no_more_than_they_show(many: Rows) -> None:
    from evolution.admin.apply_list import apply_list
    from evolution.admin.paging import PER_PAGE
    from evolution.admin.run_list import run_list

    middle = str(EvolutionApply.objects.order_by("pk").values_list("pk", flat=True)[FINISHED // 4])
    for query in ({}, {"before": middle}, {"after": middle}):
        with CaptureQueriesContext(connection) as queries:
            assert len(apply_list(query).page.rows) == PER_PAGE
            run_list(query)
        for asked in queries.captured_queries:
            if f"LIMIT {PER_PAGE + 1}" in asked["sql"]:
                plan = _plan(asked["sql"])
                assert not re.search(r"TEMP B-TREE|^\s*(->)?\s*Sort\b", plan, re.MULTILINE), plan


def _plan(sql: str) -> str:
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with connection.cursor() as cursor:
        cursor.execute(explain + sql.replace("%", "%%"))
        rows: list[Any] = cursor.fetchall()
    return "\n".join(str(row[-1]) for row in rows)


def _full_scans(plan: str) -> list[str]:
    """Steps that go through a whole table of runs or applies, or a whole index of one."""
    if connection.vendor == "sqlite":
        return re.findall(r"SCAN (?:evolution_evolution\w+|U\d+)(?! USING COVERING INDEX one_)[^\n]*", plan)
    return re.findall(r"Seq Scan on evolution_evolution(?:run|apply)\b[^\n]*", plan)
