"""The pages of runs: list, run, decisions, files, deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from core.db.admin import ReadOnlyAdmin, note_since, since
from core.db.clock import database_now
from core.paths import halo_home
from evolution.admin.answers import STATUS_OF, person
from evolution.admin.buttons import run_buttons
from evolution.admin.log import note, note_deleted
from evolution.admin.reading import file_of
from evolution.admin.run_list import run_list
from evolution.admin.run_page import run_page
from evolution.approve import approve
from evolution.cancel import cancel_run
from evolution.claim import RunSeen
from evolution.delete import DeletePlan, delete, plan_delete
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun
from evolution.reject import reject
from evolution.retry import retry
from workspaces.models import Workspace

_MANY_WORKSPACES = 200
_SALT = "evolution.delete"


@admin.register(EvolutionRun)
class EvolutionRunAdmin(ReadOnlyAdmin):
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<str:row_id>/decide/", view(self.decide), name="evolution_evolutionrun_decide"),
            path("<str:row_id>/file/", view(self.file), name="evolution_evolutionrun_file"),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._may_look(request)
        if request.method == "POST":
            return self._decide_several(request)
        return self._list(request)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self._may_look(request)
        return self._page(request, _run(object_id))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """First what would go, then, when that was confirmed, its end."""
        self._may_look(request)
        if not person(request).has_perm("workspaces.review"):
            raise PermissionDenied
        run = _run(object_id)
        try:
            plan = plan_delete(run.pk)
            if request.method == "POST":
                shown = _shown_plan(plan, request.POST.get("plan", ""))
                delete(plan=shown, user=person(request), now=database_now())
                note_deleted(user=person(request), row_id=run.pk, text=f"Deleted {', '.join(plan.names)}")
                messages.success(request, f"{', '.join(plan.names)} deleted.")
                return redirect("admin:evolution_evolutionrun_changelist")
        except Refused as refused:
            return self._page(request, run, refused=refused)
        title = {"title": f"Delete {run}?", "original": run, "here": "Delete"}
        context = {"run": run, "plan": plan, "token": _token(plan), **title}
        return self._show(request, "evolution/delete.html", context)

    def file(self, request: HttpRequest, row_id: str) -> HttpResponse:
        self._may_look(request)
        run = _run(row_id)
        text = file_of(run.workspace.paths.evolution.run(run.pk), request.GET.get("path", ""))
        if text is None:
            raise Http404("There is no such file in this run's folder.")
        title = {"title": f"File of {run}", "original": run, "here": "File"}
        return self._show(request, "evolution/file.html", {"run": run, "text": text, **title})

    def decide(self, request: HttpRequest, row_id: str) -> HttpResponse:
        """One decision on one run; what the person saw comes with it."""
        self._may_look(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = _run(row_id)
        verb = _DECISIONS.get(request.POST.get("action", ""))
        if verb is None:
            raise Http404("There is no such decision.")
        try:
            return redirect(verb(request, run))
        except Refused as refused:
            return self._page(request, _run(row_id), refused=refused, entered=request.POST)

    def _decide_several(self, request: HttpRequest) -> HttpResponse:
        user, now = person(request), database_now()
        try:
            chosen = [_parsed(value) for value in request.POST.getlist("run")]
            if request.POST.get("action") == "approve":
                return redirect(_approve_several(request, chosen, request.POST.get("text", "")))
            if request.POST.get("action") != "reject":
                raise Http404("There is no such decision.")
            if not chosen:
                raise Refused("nothing_chosen", "No run was chosen; tick at least one.")
            with transaction.atomic():
                for seen in chosen:
                    reject(run=seen, user=user, reason=request.POST.get("text", ""), now=now)
                    note(
                        user=user,
                        model=EvolutionRun,
                        row_id=seen.run_id,
                        text=f"Rejected: {request.POST.get('text', '')}",
                    )
            messages.success(request, f"{len(chosen)} rejected.")
        except Refused as refused:
            return self._list(request, refused=refused, entered=request.POST)
        return redirect(request.get_full_path())

    def _list(
        self, request: HttpRequest, *, refused: Refused | None = None, entered: QueryDict | None = None
    ) -> HttpResponse:
        page = run_list(request.GET)
        context = {
            "page": page,
            "statuses": EvolutionRun.Status.choices,
            "workspaces": Workspace.objects.order_by("path")[:_MANY_WORKSPACES],
            "may_review": person(request).has_perm("workspaces.review"),
            "refused": refused,
            "entered": entered,
            "ticked": entered.getlist("run") if entered else [],
            "title": "Runs",
        }
        status = STATUS_OF.get(refused.code, 409) if refused else 200
        return self._show(request, "evolution/run_list.html", context, status=status)

    def _page(
        self,
        request: HttpRequest,
        run: EvolutionRun,
        *,
        refused: Refused | None = None,
        entered: QueryDict | None = None,
    ) -> HttpResponse:
        context = {
            **run_page(run, home=halo_home()),
            "buttons": run_buttons(run, person(request)),
            "refused": refused,
            "entered": entered,
            "title": str(run),
            "original": run,
        }
        status = STATUS_OF.get(refused.code, 409) if refused else 200
        return self._show(request, "evolution/run.html", context, status=status)

    def _show(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        given = {**self.admin_site.each_context(request), "opts": self.opts, **since(request), **context}
        return TemplateResponse(request, template, given, status=status)

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
        note_since(request)


def _run(object_id: str) -> EvolutionRun:
    rows = EvolutionRun.objects.select_related("workspace", "current_apply", "requested_by", "decided_by")
    run = rows.filter(pk=unquote(object_id).replace("\0", "")).first()
    if run is None:
        raise Http404("There is no such run; it may have been deleted.")
    return run


def _seen(request: HttpRequest, run: EvolutionRun) -> RunSeen:
    return _parsed(f"{run.pk}:{request.POST.get('attempt', '')}:{request.POST.get('apply', '')}")


def _parsed(value: str) -> RunSeen:
    """What a checkbox or a form says was shown. Raises Refused ``changed`` for what no page ever sent."""
    run_id, _, rest = value.partition(":")
    attempt, _, apply_id = rest.partition(":")
    if not (attempt.isascii() and attempt.isdigit() and len(attempt) < 10):
        raise Refused("changed", "What was shown can't be told from this form; look at the run again.")
    return RunSeen(run_id.replace("\0", ""), int(attempt), apply_id.replace("\0", "") or None)


def _approve(request: HttpRequest, run: EvolutionRun) -> str:
    return _approve_several(request, [_seen(request, run)], request.POST.get("text", ""))


def _approve_several(request: HttpRequest, chosen: list[RunSeen], hint: str) -> str:
    user = person(request)
    with transaction.atomic():
        apply = approve(runs=chosen, user=user, hint=hint, now=database_now())
        for seen in chosen:
            text = f"Approved into {apply}" + (f": {hint}" if hint else "")
            note(user=user, model=EvolutionRun, row_id=seen.run_id, text=text)
        note(user=user, model=EvolutionApply, row_id=apply.pk, text=f"Begun from {len(chosen)} approved")
    messages.info(request, f"Approved. {apply} merges and tests it now; it says here when it has landed.")
    return reverse("admin:evolution_evolutionapply_change", args=[apply.pk])


def _reject(request: HttpRequest, run: EvolutionRun) -> str:
    user, reason = person(request), request.POST.get("text", "")
    with transaction.atomic():
        reject(run=_seen(request, run), user=user, reason=reason, now=database_now())
        note(user=user, model=EvolutionRun, row_id=run.pk, text=f"Rejected: {reason}")
    messages.success(request, f"{run} is rejected.")
    return _url(run)


def _retry(request: HttpRequest, run: EvolutionRun) -> str:
    user, choice = person(request), request.POST.get("hint_choice", "")
    if choice not in ("keep", "new"):
        raise Refused("hint_needed", "Say whether the hint stays as it is or is another one.")
    hint = None if choice == "keep" else request.POST.get("text", "")
    retry(run_id=run.pk, attempt=_seen(request, run).attempt, hint=hint, user=user, now=database_now())
    text = "Retried with the same hint" if hint is None else f"Retried with the hint: {hint}"
    note(user=user, model=EvolutionRun, row_id=run.pk, text=text)
    messages.success(request, f"{run} starts over.")
    return _url(run)


def _cancel(request: HttpRequest, run: EvolutionRun) -> str:
    user = person(request)
    with transaction.atomic():
        cancel_run(run_id=run.pk, user=user, now=database_now())
        note(user=user, model=EvolutionRun, row_id=run.pk, text="Cancelled")
    messages.success(request, f"{run} is cancelled.")
    return _url(run)


_DECISIONS: dict[str, Callable[[HttpRequest, EvolutionRun], str]] = {
    "approve": _approve,
    "reject": _reject,
    "retry": _retry,
    "cancel": _cancel,
}


def _url(run: EvolutionRun) -> str:
    return reverse("admin:evolution_evolutionrun_change", args=[run.pk])


def _token(plan: DeletePlan) -> str:
    return signing.dumps(_listed(plan), salt=_SALT)


def _shown_plan(plan: DeletePlan, token: str) -> DeletePlan:
    """``plan`` if it is what the person was shown. Raises Refused ``changed``."""
    try:
        shown = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        shown = None
    if shown != _listed(plan):
        raise Refused("changed", "What would be deleted has changed since it was listed; look again.")
    return plan


def _listed(plan: DeletePlan) -> list[object]:
    return [plan.run_id, list(plan.apply_ids), list(plan.scenario_ids), sorted(map(str, plan.paths))]
