"""Rows by the whole id, with or without its prefix: shortened ids are for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Prefetch, QuerySet

from core.db.rest import pages
from core.ids import is_row_id
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario


def runs() -> QuerySet[EvolutionRun]:
    """With what a row of the list shows."""
    return EvolutionRun.objects.select_related("workspace", "current_apply", "decided_by")


def applies() -> QuerySet[EvolutionApply]:
    """With what a row of the list shows."""
    sources = Prefetch("source_runs", queryset=EvolutionRun.objects.only("pk"))
    return EvolutionApply.objects.select_related(
        "workspace", "approved_by", "rolled_back_by"
    ).prefetch_related(sources)


def page(
    found: QuerySet[Any], *, workspace: int | None, cursor: str, limit: int, show: Callable[[Any], Any]
) -> dict[str, Any]:
    """One page of a list, newest first. Raises ApiError 400 for a cursor that isn't one."""
    if workspace is not None:
        found = found.filter(workspace_id=workspace)
    if cursor:
        found = found.filter(pk__lt=place(cursor))
    return pages.page(
        list(found.order_by("-pk")[: limit + 1]), limit=limit, show=show, key=lambda row: [row.pk]
    )


def find_run(text: str) -> EvolutionRun:
    """Raises Refused ``not_found``."""
    run = runs().filter(pk=_id(text, "run-")).first()
    if run is None:
        raise Refused("not_found", "There is no such run; it may have been deleted.")
    return run


def find_apply(text: str) -> EvolutionApply:
    """Raises Refused ``not_found``."""
    apply = applies().filter(pk=apply_id(text)).first()
    if apply is None:
        raise Refused("not_found", "There is no such apply; it may have been deleted.")
    return apply


def scenarios() -> QuerySet[RegressionScenario]:
    """With what a row of the list shows."""
    return RegressionScenario.objects.select_related("workspace", "retired_by")


def find_scenario(text: str) -> RegressionScenario:
    """Raises Refused ``not_found``."""
    row = scenarios().filter(pk=_id(text, "scenario-")).first()
    if row is None:
        raise Refused("not_found", "There is no such scenario; it may have gone with the run that left it.")
    return row


def apply_id(text: str) -> str:
    """The bare id; empty for what can't be one."""
    return _id(text, "apply-")


def place(cursor: str) -> str:
    """The id at which a cursor of runs or applies stands. Raises ApiError ``bad_cursor``."""
    row_id = pages.decode(cursor, parts=1)[0]
    if not is_row_id(row_id):
        raise pages.bad_cursor()
    return row_id


def _id(text: str, prefix: str) -> str:
    word = text.removeprefix(prefix)
    return word if is_row_id(word) else ""
