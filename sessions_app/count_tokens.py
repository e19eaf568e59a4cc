"""Adding what a turn used to its day, so that a chart needs no logs."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction
from django.db.models import F

from agents.events import Usage
from sessions_app.models import TokensOnDay


def count_tokens(*, workspace_id: int, use: TokensOnDay.Use, spent: Usage, now: datetime) -> None:
    """One small row per workspace, day (UTC) and use; within the caller's transaction, if there is one."""
    if not spent.input_tokens and not spent.output_tokens:
        return
    with transaction.atomic():
        row, _ = TokensOnDay.objects.get_or_create(
            workspace_id=workspace_id, day=now.astimezone(UTC).date(), use=use
        )
        TokensOnDay.objects.filter(pk=row.pk).update(
            input_tokens=F("input_tokens") + spent.input_tokens,
            output_tokens=F("output_tokens") + spent.output_tokens,
        )
