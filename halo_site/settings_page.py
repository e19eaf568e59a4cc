"""The settings page: the machine's, or with ``?workspace=`` a workspace's own file."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from core import clock
from core.paths import halo_home
from core.settings_file import Settings
from core.settings_save import SettingsRefusedError
from core.settings_schema import SCHEMA
from halo_site.change_settings import PERMISSION, change_settings
from halo_site.settings_form import changes, fields
from workspaces.models import Workspace


def settings_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """``context``: what the admin site gives every page. Whoever gets here may look; saving asks again."""
    workspace = _workspace(request)
    if request.method != "POST":
        return _page(request, context, workspace)
    posted = request.POST.dict()
    try:
        changed = change_settings(
            user=_user(request),
            home=halo_home(),
            changes=changes(posted, workspace.paths if workspace is not None else None),
            workspace=workspace,
            now=clock.now(),
        )
    except SettingsRefusedError as refused:
        errors = {refusal.key: str(refusal) for refusal in refused.refusals}
        return _page(request, context, workspace, posted=posted, errors=errors, status=400)
    except OSError as error:
        text = f"The settings file can't be written: {error.strerror}. Nothing was changed."
        return _page(request, context, workspace, posted=posted, errors={"": text}, status=500)
    messages.success(request, _said(changed))
    query = f"?workspace={workspace.pk}" if workspace is not None else ""
    return HttpResponseRedirect(reverse("admin:settings") + query)


def _page(
    request: HttpRequest,
    context: dict[str, Any],
    workspace: Workspace | None,
    *,
    posted: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    paths = workspace.paths if workspace is not None else None
    sections = fields(halo_home(), paths, posted=posted, errors=errors)
    return render(
        request,
        "halo/settings.html",
        {
            **context,
            "title": "Settings",
            "workspace": workspace,
            "workspaces": Workspace.objects.order_by("path"),
            "sections": sections,
            "faults": Settings.load(halo_home(), paths).faults,
            "may_change": _user(request).has_perm(PERMISSION),
            "errors": errors or {},
            "file_error": " ".join(text for key, text in (errors or {}).items() if key not in SCHEMA),
        },
        status=status,
    )


def _workspace(request: HttpRequest) -> Workspace | None:
    number = request.GET.get("workspace", "")
    if number == "":
        return None
    found = Workspace.objects.filter(pk=int(number)).first() if _is_number(number) else None
    if found is None:
        raise Http404
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _user(request: HttpRequest) -> User:
    user = request.user
    if not isinstance(user, User):
        raise Http404
    return user


def _said(changed: tuple[str, ...]) -> str:
    if not changed:
        return "Nothing was changed."
    restart = [key for key in changed if SCHEMA[key].restart]
    later = f" {', '.join(restart)} takes effect at the next start." if restart else ""
    return f"Saved: {', '.join(changed)}.{later}"
