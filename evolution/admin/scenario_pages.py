"""The pages of kept scenarios: list, one with its texts, and taking it out of use or back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from core.db.clock import database_now
from evolution.admin.log import note
from evolution.admin.pages import Pages, address, person
from evolution.admin.paging import filters_of, in_workspace, page_of
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.retire import restore, retire

_FILTERS = ("state", "workspace", "agent", "q")


@admin.register(RegressionScenario)
class RegressionScenarioAdmin(Pages[RegressionScenario]):
    list_page = "evolution/scenario_list.html"
    row_page = "evolution/scenario.html"
    gone = "There is no such scenario; it may have gone with the run that left it."

    def rows(self) -> QuerySet[RegressionScenario]:
        return RegressionScenario.objects.select_related("workspace", "retired_by")

    def verbs(self) -> Mapping[str, Callable[[HttpRequest, RegressionScenario], str]]:
        return {"retire": _retire, "restore": _restore}

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        given = filters_of(request.GET, _FILTERS)
        rows = _filtered(self.rows(), given)
        return {"page": page_of(rows, request.GET, given), "given": given, "title": "Kept scenarios"}

    def shown(self, request: HttpRequest, row: RegressionScenario) -> dict[str, Any]:
        return {
            "scenario": row,
            "run": EvolutionRun.objects.filter(pk=row.run_id).first(),
            "apply": EvolutionApply.objects.filter(pk=row.apply_id).first(),
            "may_review": person(request).has_perm("workspaces.review"),
        }


def _retire(request: HttpRequest, row: RegressionScenario) -> str:
    user, reason = person(request), request.POST.get("text", "")
    with transaction.atomic():
        retire(scenario_id=row.pk, user=user, reason=reason, now=database_now())
        text = "Retired" + (f": {reason}" if reason else "")
        note(user=user, model=RegressionScenario, row_id=row.pk, text=text)
    messages.success(request, f"{row}: no apply is held to it from now on.")
    return address(row)


def _restore(request: HttpRequest, row: RegressionScenario) -> str:
    user = person(request)
    with transaction.atomic():
        restore(scenario_id=row.pk, user=user, now=database_now())
        note(user=user, model=RegressionScenario, row_id=row.pk, text="Put back into use")
    messages.success(request, f"{row}: applies are held to it again.")
    return address(row)


def _filtered(rows: QuerySet[RegressionScenario], given: Mapping[str, str]) -> QuerySet[RegressionScenario]:
    if given.get("state") != "all":
        rows = rows.filter(retired_at__isnull=given.get("state") != "retired")
    if "workspace" in given:
        rows = in_workspace(rows, given["workspace"])
    if "agent" in given:
        rows = rows.filter(agent_id=given["agent"])
    if "q" in given:
        text = given["q"]
        word = text.removeprefix("scenario-").removeprefix("run-").lower()
        rows = rows.filter(
            Q(pk__startswith=word)
            | Q(pk__endswith=word)
            | Q(run_id=word)
            | Q(target__icontains=text)
            | Q(test_message__icontains=text)
        )
    return rows
