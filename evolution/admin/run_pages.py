"""The pages of runs: list, run, decisions, files, deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern

from core.db.clock import database_now
from core.paths import halo_home
from evolution.admin.buttons import run_buttons
from evolution.admin.log import note, note_deleted
from evolution.admin.pages import Pages, address, person
from evolution.admin.reading import file_of
from evolution.admin.run_list import run_list
from evolution.admin.run_page import run_page
from evolution.approve import approve
from evolution.cancel import cancel_run
from evolution.claim import RunSeen
from evolution.delete import DeletePlan, delete, plan_delete
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun
from evolution.places import found_of
from evolution.reject import reject
from evolution.retry import retry

_SALT = "evolution.delete"


@admin.register(EvolutionRun)
class EvolutionRunAdmin(Pages[EvolutionRun]):
    list_page = "evolution/run_list.html"
    row_page = "evolution/run.html"
    gone = "There is no such run; it may have been deleted."

    def get_urls(self) -> list[URLPattern]:
        return [self._row_url("file", self.file), *super().get_urls()]

    def rows(self) -> QuerySet[EvolutionRun]:
        return EvolutionRun.objects.select_related("workspace", "current_apply", "requested_by", "decided_by")

    def verbs(self) -> Mapping[str, Callable[[HttpRequest, EvolutionRun], str]]:
        return {"approve": _approve, "reject": _reject, "retry": _retry, "cancel": _cancel}

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "page": run_list(request.GET),
            "statuses": EvolutionRun.Status.choices,
            "may_review": person(request).has_perm("workspaces.review"),
            "ticked": request.POST.getlist("run"),
            "title": "Runs",
        }

    def shown(self, request: HttpRequest, row: EvolutionRun) -> dict[str, Any]:
        return {**run_page(row, home=halo_home()), "buttons": run_buttons(row, person(request))}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._may_look(request)
        return self._decide_several(request) if request.method == "POST" else self._list(request)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """First what would go, then, when that was confirmed, its end."""
        self._may_look(request)
        if not person(request).has_perm("workspaces.review"):
            raise PermissionDenied
        run = self._find(object_id)
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
        run = self._find(row_id)
        with found_of(run, attempt=run.attempts) as found:
            text = file_of(found.folder, request.GET.get("path", ""))
        if text is None:
            raise Http404("There is no such file in this run's folder.")
        title = {"title": f"File of {run}", "original": run, "here": "File"}
        return self._show(request, "evolution/file.html", {"run": run, "text": text, **title})

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
            return self._list(request, refused=refused)
        return redirect(request.get_full_path())


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
    return address(apply)


def _reject(request: HttpRequest, run: EvolutionRun) -> str:
    user, reason = person(request), request.POST.get("text", "")
    with transaction.atomic():
        reject(run=_seen(request, run), user=user, reason=reason, now=database_now())
        note(user=user, model=EvolutionRun, row_id=run.pk, text=f"Rejected: {reason}")
    messages.success(request, f"{run} is rejected.")
    return address(run)


def _retry(request: HttpRequest, run: EvolutionRun) -> str:
    user, choice = person(request), request.POST.get("hint_choice", "")
    if choice not in ("keep", "new"):
        raise Refused("hint_needed", "Say whether the hint stays as it is or is another one.")
    hint = None if choice == "keep" else request.POST.get("text", "")
    retry(run_id=run.pk, attempt=_seen(request, run).attempt, hint=hint, user=user, now=database_now())
    text = "Retried with the same hint" if hint is None else f"Retried with the hint: {hint}"
    note(user=user, model=EvolutionRun, row_id=run.pk, text=text)
    messages.success(request, f"{run} starts over.")
    return address(run)


def _cancel(request: HttpRequest, run: EvolutionRun) -> str:
    user = person(request)
    with transaction.atomic():
        cancel_run(run_id=run.pk, user=user, now=database_now())
        note(user=user, model=EvolutionRun, row_id=run.pk, text="Cancelled")
    messages.success(request, f"{run} is cancelled.")
    return address(run)


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
