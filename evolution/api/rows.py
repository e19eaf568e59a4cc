"""Runs, applies and kept scenarios as REST gives them: found by the whole id, listed by page, noted when decided on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from ninja import Schema
from pydantic import Field

from core.db.rest import pages
from core.db.rest.auth import caller_of
from core.ids import is_row_id
from evolution.admin.log import note
from evolution.console import as_json
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario

RowT = TypeVar("RowT", EvolutionRun, EvolutionApply, RegressionScenario)
MAX_NUMBER = 2**63 - 1


class Listed(Schema):
    """Which page of a list; ``cursor`` is the last answer's ``next``."""

    workspace: int | None = Field(None, ge=1, le=MAX_NUMBER)
    cursor: str = ""
    limit: int = Field(pages.DEFAULT_LIMIT, ge=1, le=pages.MAX_LIMIT)


@dataclass(frozen=True, slots=True)
class Rows(Generic[RowT]):
    """One kind. ``rows`` loads what ``show`` shows; ``gone`` is said of an id that no row has."""

    prefix: str
    gone: str
    rows: Callable[[], QuerySet[RowT]]
    show: Callable[[RowT], dict[str, Any]]

    def find(self, text: str) -> RowT:
        """By the whole id, with or without its prefix: shortened ones are for people. Raises Refused ``not_found``."""
        row = self.rows().filter(pk=self.id_of(text)).first()
        if row is None:
            raise Refused("not_found", self.gone)
        return row

    def id_of(self, text: str) -> str:
        """The bare id; empty for what can't be one."""
        word = text.removeprefix(self.prefix)
        return word if is_row_id(word) else ""

    def page(self, found: QuerySet[RowT], listed: Listed) -> dict[str, Any]:
        """Newest first. Raises ApiError 400 for a cursor that isn't one."""
        if listed.workspace is not None:
            found = found.filter(workspace_id=listed.workspace)
        if listed.cursor:
            found = found.filter(pk__lt=_place(listed.cursor))
        return pages.page(
            list(found.order_by("-pk")[: listed.limit + 1]),
            limit=listed.limit,
            show=self.show,
            key=lambda row: [row.pk],
        )

    def noted(self, request: HttpRequest, row: RowT, text: str) -> dict[str, Any]:
        """Put what the caller has decided into the admin's log; the row as it is now."""
        note(user=caller_of(request).user, model=type(row), row_id=row.pk, text=text)
        return self.show(self.find(row.pk))


def _runs() -> QuerySet[EvolutionRun]:
    return EvolutionRun.objects.select_related("workspace", "current_apply", "decided_by")


def _applies() -> QuerySet[EvolutionApply]:
    sources = Prefetch("source_runs", queryset=EvolutionRun.objects.only("pk"))
    people = EvolutionApply.objects.select_related("workspace", "approved_by", "rolled_back_by")
    return people.prefetch_related(sources)


def _scenarios() -> QuerySet[RegressionScenario]:
    return RegressionScenario.objects.select_related("workspace", "retired_by")


def _place(cursor: str) -> str:
    """The id at which a cursor stands. Raises ApiError ``bad_cursor``."""
    row_id = pages.decode(cursor, parts=1)[0]
    if not is_row_id(row_id):
        raise pages.bad_cursor()
    return row_id


RUNS = Rows("run-", "There is no such run; it may have been deleted.", _runs, as_json.run_row)
APPLIES = Rows("apply-", "There is no such apply; it may have been deleted.", _applies, as_json.apply_row)
SCENARIOS = Rows(
    "scenario-",
    "There is no such scenario; it may have gone with the run that left it.",
    _scenarios,
    as_json.scenario_row,
)
