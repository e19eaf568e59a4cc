"""The pages of kept scenarios: list, one with its texts, and taking it out of use or back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from core.db.admin import ReadOnlyAdmin, note_since, since
from core.db.clock import database_now
from evolution.admin.answers import STATUS_OF, person
from evolution.admin.log import note
from evolution.admin.paging import filters_of, in_workspace, page_of
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.retire import restore, retire
from workspaces.models import Workspace

_MANY_WORKSPACES = 200
_FILTERS = ("state", "workspace", "agent", "q")


@admin.register(RegressionScenario)
class RegressionScenarioAdmin(ReadOnlyAdmin):
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.decide)
        name = "evolution_regressionscenario_decide"
        return [path("<str:row_id>/decide/", view, name=name), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._may_look(request)
        given = filters_of(request.GET, _FILTERS)
        rows = _filtered(given).select_related("workspace", "retired_by")
        context = {
            "page": page_of(rows, request.GET, given),
            "given": given,
            "workspaces": Workspace.objects.order_by("path")[:_MANY_WORKSPACES],
            "title": "Kept scenarios",
        }
        return self._show(request, "evolution/scenario_list.html", context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self._may_look(request)
        return self._page(request, _scenario(object_id))

    def decide(self, request: HttpRequest, row_id: str) -> HttpResponse:
        self._may_look(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row, action = _scenario(row_id), request.POST.get("action", "")
        if action not in ("retire", "restore"):
            raise Http404("There is no such decision.")
        try:
            with transaction.atomic():
                _decide(request, row, action)
        except Refused as refused:
            return self._page(request, _scenario(row_id), refused=refused)
        return redirect(reverse("admin:evolution_regressionscenario_change", args=[row.pk]))

    def _page(
        self, request: HttpRequest, row: RegressionScenario, *, refused: Refused | None = None
    ) -> HttpResponse:
        context = {
            "scenario": row,
            "run": EvolutionRun.objects.filter(pk=row.run_id).first(),
            "apply": EvolutionApply.objects.filter(pk=row.apply_id).first(),
            "may_review": person(request).has_perm("workspaces.review"),
            "refused": refused,
            "title": str(row),
            "original": row,
        }
        status = STATUS_OF.get(refused.code, 409) if refused else 200
        return self._show(request, "evolution/scenario.html", context, status=status)

    def _show(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        given = {**self.admin_site.each_context(request), "opts": self.opts, **since(request), **context}
        return TemplateResponse(request, template, given, status=status)

    def _may_look(self, request: HttpRequest) -> None:
        note_since(request)
        if not self.has_view_permission(request):
            raise PermissionDenied


def _decide(request: HttpRequest, row: RegressionScenario, action: str) -> None:
    user, now, reason = person(request), database_now(), request.POST.get("text", "")
    if action == "retire":
        retire(scenario_id=row.pk, user=user, reason=reason, now=now)
        text, said = "Retired" + (f": {reason}" if reason else ""), "no apply is held to it from now on."
    else:
        restore(scenario_id=row.pk, user=user, now=now)
        text, said = "Put back into use", "applies are held to it again."
    note(user=user, model=RegressionScenario, row_id=row.pk, text=text)
    messages.success(request, f"{row}: {said}")


def _scenario(object_id: str) -> RegressionScenario:
    rows = RegressionScenario.objects.select_related("workspace", "retired_by")
    row = rows.filter(pk=unquote(object_id).replace("\0", "")).first()
    if row is None:
        raise Http404("There is no such scenario; it may have gone with the run that left it.")
    return row


def _filtered(given: Mapping[str, str]) -> QuerySet[RegressionScenario]:
    rows = RegressionScenario.objects.all()
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
