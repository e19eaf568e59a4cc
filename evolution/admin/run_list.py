"""One page of the run list: by cursor, so that the ten-thousandth page costs what the first one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from core.paths import halo_home
from evolution.admin.paging import filters_of, in_workspace, page_of
from evolution.models import EvolutionRun
from evolution.run_view import is_stale
from evolution.states import RunStatus

_FILTERS = ("status", "auto", "observation", "archived", "workspace", "agent", "q")


@dataclass(frozen=True, slots=True)
class Line:
    """``seen`` is what the checkbox sends back: the run as it stands here."""

    run: EvolutionRun
    seen: str
    stale: bool

    @property
    def waits(self) -> bool:
        return self.run.status == RunStatus.AWAITING_REVIEW

    @property
    def is_auto(self) -> bool:
        return self.run.current_apply is not None and self.run.current_apply.is_auto


@dataclass(frozen=True, slots=True)
class RunListPage:
    """``newer`` and ``older`` are query strings of the neighbouring pages, empty where there is none."""

    lines: list[Line]
    given: dict[str, str]
    newer: str
    older: str


def run_list(query: Mapping[str, str]) -> RunListPage:
    """``query``: the filters, and ``before`` or ``after`` an id. Anything that can't be meant finds nothing."""
    given = filters_of(query, _FILTERS)
    home = halo_home()
    page = page_of(_filtered(given).select_related("workspace", "current_apply"), query, given)
    return RunListPage(
        lines=[Line(run, seen=seen_value(run), stale=is_stale(run, home=home)) for run in page.rows],
        given=given,
        newer=page.newer,
        older=page.older,
    )


def seen_value(run: EvolutionRun) -> str:
    apply_id = run.current_apply_id if run.status == RunStatus.APPROVED else ""
    return f"{run.pk}:{run.attempts}:{apply_id or ''}"


def _filtered(given: Mapping[str, str]) -> QuerySet[EvolutionRun, Any]:
    rows = EvolutionRun.objects.all()
    if "status" in given:
        rows = rows.filter(status=given["status"])
    if "auto" in given:
        rows = rows.filter(current_apply__isnull=False, current_apply__approved_by__isnull=True)
    if "observation" in given:
        rows = rows.filter(has_observation=True)
    if given.get("archived") != "all":
        rows = rows.filter(archived_at__isnull=given.get("archived") != "only")
    if "workspace" in given:
        rows = in_workspace(rows, given["workspace"])
    if "agent" in given:
        rows = rows.filter(agent_id=given["agent"])
    return rows.filter(_search(given["q"])) if "q" in given else rows


def _search(text: str) -> Q:
    word = text.removeprefix("run-").lower()
    return (
        Q(pk__startswith=word)
        | Q(pk__endswith=word)
        | Q(user_hint__icontains=text)
        | Q(source_session_id=text)
    )
