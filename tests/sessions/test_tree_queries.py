"""Rows of a tree are found by an index, in a database full of other trees."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from sessions_app import ledger, trees
from sessions_app.delete_session import what_goes
from sessions_app.models import Session
from tests.sessions.trees import start


@pytest.mark.usefixtures("agent")
def test_what_a_deletion_takes_is_its_own_tree(session: Session) -> None:
    child = start(session)
    grandchild = start(child)
    neighbour = Session.objects.get(pk=session.pk)
    neighbour.pk = f"{session.pk}x"
    neighbour.save(force_insert=True)
    assert [row.pk for row in what_goes(session).sessions] == [session.pk, child.pk, grandchild.pk]


@pytest.mark.parametrize("of_what", ["sessions", "ledger"])
def test_no_table_is_scanned(session: Session, of_what: str) -> None:
    rows: QuerySet[Any] = ledger.entries(session.pk)
    if of_what == "sessions":
        rows = Session.objects.filter(trees.below(session.pk))
    if connection.vendor != "sqlite":
        pytest.skip("what SQLite's planner says")
    plan = rows.explain()
    assert "SCAN" not in plan and "SEARCH" in plan, plan
