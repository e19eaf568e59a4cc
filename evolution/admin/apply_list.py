"""One page of the list of applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Prefetch, Q, QuerySet

from evolution.admin.paging import Page, filters_of, in_workspace, page_of
from evolution.models import EvolutionApply, EvolutionRun

_FILTERS = ("status", "auto", "person", "archived", "workspace", "q")


@dataclass(frozen=True, slots=True)
class ApplyListPage:
    page: Page[EvolutionApply]
    given: dict[str, str]


def apply_list(query: Mapping[str, str]) -> ApplyListPage:
    """``query``: the filters, and ``before`` or ``after`` an id. Anything that can't be meant finds nothing."""
    given = filters_of(query, _FILTERS)
    sources = Prefetch("source_runs", queryset=EvolutionRun.objects.only("pk", "user_hint").order_by("pk"))
    rows = _filtered(given).select_related("workspace", "approved_by").prefetch_related(sources)
    return ApplyListPage(page_of(rows, query, given), given)


def _filtered(given: Mapping[str, str]) -> QuerySet[EvolutionApply]:
    rows = EvolutionApply.objects.all()
    if "status" in given:
        rows = rows.filter(status=given["status"])
    if "auto" in given:
        rows = rows.filter(approved_by__isnull=True)
    if "person" in given:
        rows = rows.filter(needs_person__isnull=False)
    if given.get("archived") != "all":
        rows = rows.filter(archived_at__isnull=given.get("archived") != "only")
    if "workspace" in given:
        rows = in_workspace(rows, given["workspace"])
    return rows.filter(_search(given["q"])) if "q" in given else rows


def _search(text: str) -> Q:
    word = text.removeprefix("apply-").lower()
    return Q(pk__startswith=word) | Q(pk__endswith=word) | Q(failure_reason__icontains=text)
