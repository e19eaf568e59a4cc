"""The pages of applies: list, apply, decisions, and the rollback with what it would meet."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from core.db.admin import ReadOnlyAdmin, note_since, since
from core.db.clock import database_now
from evolution.admin.answers import STATUS_OF, person
from evolution.admin.apply_list import apply_list
from evolution.admin.apply_page import apply_page, rollback_diffs
from evolution.admin.buttons import apply_buttons
from evolution.admin.log import note
from evolution.cancel import cancel_apply
from evolution.errors import Refused
from evolution.models import EvolutionApply
from evolution.request_rollback import RollbackPreview, await_outcome, preview, request_rollback
from evolution.try_again import try_again
from workspaces.models import Workspace

_MANY_WORKSPACES = 200
_SALT = "evolution.rollback"


@admin.register(EvolutionApply)
class EvolutionApplyAdmin(ReadOnlyAdmin):
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<str:row_id>/decide/", view(self.decide), name="evolution_evolutionapply_decide"),
            path("<str:row_id>/rollback/", view(self.rollback), name="evolution_evolutionapply_rollback"),
            *super().get_urls(),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._may_look(request)
        found = apply_list(request.GET)
        context = {
            "page": found.page,
            "given": found.given,
            "statuses": EvolutionApply.Status.choices,
            "workspaces": Workspace.objects.order_by("path")[:_MANY_WORKSPACES],
            "title": "Applies",
        }
        return self._show(request, "evolution/apply_list.html", context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        self._may_look(request)
        return self._page(request, _apply(object_id))

    def decide(self, request: HttpRequest, row_id: str) -> HttpResponse:
        self._may_look(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        apply = _apply(row_id)
        verb = _DECISIONS.get(request.POST.get("action", ""))
        if verb is None:
            raise Http404("There is no such decision.")
        try:
            verb(request, apply)
        except Refused as refused:
            return self._page(request, _apply(row_id), refused=refused)
        return redirect(_url(apply))

    def rollback(self, request: HttpRequest, row_id: str) -> HttpResponse:
        """First what would happen, conflicts asked for by name; then the request, and what became of it."""
        self._may_look(request)
        if not person(request).has_perm("workspaces.rollback"):
            raise PermissionDenied
        apply = _apply(row_id)
        refused = None
        if request.method == "POST":
            try:
                return self._roll_back(request, apply)
            except Refused as error:
                refused = error
        try:
            found = preview(apply_id=apply.pk)
        except Refused as error:
            return self._page(request, _apply(row_id), refused=refused or error)
        return self._ask(request, found, refused)

    def _roll_back(self, request: HttpRequest, apply: EvolutionApply) -> HttpResponse:
        user, attempts, seen = person(request), *_shown(request.POST.get("shown", ""), apply)
        force = request.POST.get("force") == "1"
        request_rollback(
            apply_id=apply.pk,
            attempts=attempts,
            user=user,
            force=force,
            seen=seen if force else (),
            now=database_now(),
        )
        over = f", over {', '.join(str(item['rel']) for item in seen)}" if force and seen else ""
        note(user=user, model=EvolutionApply, row_id=apply.pk, text=f"Rollback asked for{over}")
        outcome = await_outcome(apply_id=apply.pk)
        if outcome is None:
            messages.info(request, f"{apply} is being rolled back; this page says when it is done.")
        else:
            messages.success(request, f"{apply} is rolled back.")
        return redirect(_url(apply))

    def _ask(self, request: HttpRequest, found: RollbackPreview, refused: Refused | None) -> HttpResponse:
        try:
            found.inspection.refuse(force=True, shown=found.conflicts)
            impossible = None
        except Refused as error:
            impossible = error
        context = {
            "apply": found.apply,
            "found": found,
            "files": found.inspection.files,
            "diffs": rollback_diffs(found),
            "impossible": impossible,
            "shown": signing.dumps(
                [found.apply.pk, found.apply.attempts, json.dumps(found.conflicts)], salt=_SALT
            ),
            "refused": None if impossible else refused,
            "title": f"Roll back {found.apply}?",
            "original": found.apply,
            "here": "Roll back",
        }
        status = 409 if refused or impossible else 200
        return self._show(request, "evolution/rollback.html", context, status=status)

    def _page(
        self, request: HttpRequest, apply: EvolutionApply, *, refused: Refused | None = None
    ) -> HttpResponse:
        context = {
            **apply_page(apply),
            "buttons": apply_buttons(apply, person(request)),
            "refused": refused,
            "title": str(apply),
            "original": apply,
        }
        status = STATUS_OF.get(refused.code, 409) if refused else 200
        return self._show(request, "evolution/apply.html", context, status=status)

    def _show(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        given = {**self.admin_site.each_context(request), "opts": self.opts, **since(request), **context}
        return TemplateResponse(request, template, given, status=status)

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
        note_since(request)


def _apply(object_id: str) -> EvolutionApply:
    rows = EvolutionApply.objects.select_related("workspace", "approved_by", "rolled_back_by")
    apply = rows.filter(pk=unquote(object_id).replace("\0", "")).first()
    if apply is None:
        raise Http404("There is no such apply; it may have been deleted.")
    return apply


def _shown(token: str, apply: EvolutionApply) -> tuple[int, list[dict[str, Any]]]:
    """The attempt and the conflicts that the person was shown. Raises Refused ``changed``."""
    try:
        apply_id, attempts, conflicts = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        apply_id, attempts, conflicts = "", 0, "[]"
    if apply_id != apply.pk:
        raise Refused("changed", "What would be overwritten can't be told from this form; look again.")
    return attempts, json.loads(conflicts)


def _cancel(request: HttpRequest, apply: EvolutionApply) -> None:
    user = person(request)
    with transaction.atomic():
        cancel_apply(apply_id=apply.pk, user=user, now=database_now())
        note(user=user, model=EvolutionApply, row_id=apply.pk, text="Cancelled")
    messages.success(request, f"{apply} is cancelled.")


def _try_again(request: HttpRequest, apply: EvolutionApply) -> None:
    user = person(request)
    with transaction.atomic():
        try_again(apply_id=apply.pk, user=user, now=database_now())
        note(user=user, model=EvolutionApply, row_id=apply.pk, text="Sent on again")
    messages.success(request, f"{apply} goes on as soon as a slot is free.")


_DECISIONS: dict[str, Callable[[HttpRequest, EvolutionApply], None]] = {
    "cancel": _cancel,
    "try-again": _try_again,
}


def _url(apply: EvolutionApply) -> str:
    return reverse("admin:evolution_evolutionapply_change", args=[apply.pk])
