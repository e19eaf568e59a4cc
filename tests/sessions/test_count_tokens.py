"""Tokens of a day: added up per workspace and use, by turns as they end, and never across midnight."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from agents.events import Usage
from sessions_app.count_tokens import count_tokens
from sessions_app.models import TokensOnDay
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHAT, EVOLUTION = TokensOnDay.Use.CHAT, TokensOnDay.Use.EVOLUTION


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.objects.create(path=str(tmp_path), host="here", created_at=NOON)


def _rows() -> list[tuple[date, str, int, int]]:
    return list(
        TokensOnDay.objects.order_by("day", "use").values_list("day", "use", "input_tokens", "output_tokens")
    )


def test_a_day_has_one_row_for_each_use(workspace: Workspace) -> None:
    for use, now in ((CHAT, NOON), (EVOLUTION, NOON), (CHAT, NOON + timedelta(hours=2))):
        count_tokens(workspace_id=workspace.pk, use=use, spent=Usage(100, 7), now=now)

    assert _rows() == [(NOON.date(), "chat", 200, 14), (NOON.date(), "evolution", 100, 7)]


def test_days_are_those_of_utc(workspace: Workspace) -> None:
    late = datetime(2026, 3, 2, 1, tzinfo=timezone(timedelta(hours=2)))

    count_tokens(workspace_id=workspace.pk, use=CHAT, spent=Usage(1, 1), now=late)
    count_tokens(workspace_id=workspace.pk, use=CHAT, spent=Usage(1, 1), now=late + timedelta(hours=2))

    assert _rows() == [(date(2026, 3, 1), "chat", 1, 1), (date(2026, 3, 2), "chat", 1, 1)]


def test_what_asked_no_model_leaves_no_row(workspace: Workspace) -> None:
    count_tokens(workspace_id=workspace.pk, use=CHAT, spent=Usage(0, 0), now=NOON)

    assert _rows() == []
