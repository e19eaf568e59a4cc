"""The pages of applies: list, apply, decisions, and the rollback with what it would meet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern

from core.db.clock import database_now
from evolution.admin.apply_list import apply_list
from evolution.admin.apply_page import apply_page, rollback_diffs
from evolution.admin.buttons import apply_buttons
from evolution.admin.log import note
from evolution.admin.pages import Pages, address, person
from evolution.cancel import cancel_apply
from evolution.errors import Refused
from evolution.models import EvolutionApply
from evolution.request_rollback import RollbackPreview, await_outcome, preview, request_rollback
from evolution.try_again import try_again

_SALT = "evolution.rollback"


@admin.register(EvolutionApply)
class EvolutionApplyAdmin(Pages[EvolutionApply]):
    list_page = "evolution/apply_list.html"
    row_page = "evolution/apply.html"
    gone = "There is no such apply; it may have been deleted."

    def get_urls(self) -> list[URLPattern]:
        return [self._row_url("rollback", self.rollback), *super().get_urls()]

    def rows(self) -> QuerySet[EvolutionApply]:
        return EvolutionApply.objects.select_related("workspace", "approved_by", "rolled_back_by")

    def verbs(self) -> Mapping[str, Callable[[HttpRequest, EvolutionApply], str]]:
        return {"cancel": _cancel, "try-again": _try_again}

    def listed(self, request: HttpRequest) -> dict[str, Any]:
        found = apply_list(request.GET)
        return {
            "page": found.page,
            "given": found.given,
            "statuses": EvolutionApply.Status.choices,
            "title": "Applies",
        }

    def shown(self, request: HttpRequest, row: EvolutionApply) -> dict[str, Any]:
        return {**apply_page(row), "buttons": apply_buttons(row, person(request))}

    def rollback(self, request: HttpRequest, row_id: str) -> HttpResponse:
        """First what would happen, conflicts asked for by name; then the request, and what became of it."""
        self._may_look(request)
        if not person(request).has_perm("workspaces.rollback"):
            raise PermissionDenied
        apply = self._find(row_id)
        refused = None
        if request.method == "POST":
            try:
                return self._roll_back(request, apply)
            except Refused as error:
                refused = error
        try:
            found = preview(apply_id=apply.pk)
        except Refused as error:
            return self._page(request, self._find(row_id), refused=refused or error)
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
        return redirect(address(apply))

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
            "title": f"Roll back {found.apply}?",
            "original": found.apply,
            "here": "Roll back",
        }
        return self._show(request, "evolution/rollback.html", context, refused=refused or impossible)


def _shown(token: str, apply: EvolutionApply) -> tuple[int, list[dict[str, Any]]]:
    """The attempt and the conflicts that the person was shown. Raises Refused ``changed``."""
    try:
        apply_id, attempts, conflicts = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        apply_id, attempts, conflicts = "", 0, "[]"
    if apply_id != apply.pk:
        raise Refused("changed", "What would be overwritten can't be told from this form; look again.")
    return attempts, json.loads(conflicts)


def _cancel(request: HttpRequest, apply: EvolutionApply) -> str:
    user = person(request)
    with transaction.atomic():
        cancel_apply(apply_id=apply.pk, user=user, now=database_now())
        note(user=user, model=EvolutionApply, row_id=apply.pk, text="Cancelled")
    messages.success(request, f"{apply} is cancelled.")
    return address(apply)


def _try_again(request: HttpRequest, apply: EvolutionApply) -> str:
    user = person(request)
    with transaction.atomic():
        try_again(apply_id=apply.pk, user=user, now=database_now())
        note(user=user, model=EvolutionApply, row_id=apply.pk, text="Sent on again")
    messages.success(request, f"{apply} goes on as soon as a slot is free.")
    return address(apply)
