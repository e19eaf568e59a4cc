"""The site that every admin page belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from unfold.sites import UnfoldAdminSite

from core import clock
from core.db.events import latest
from halo_site.dashboard import read_dashboard
from halo_site.login import LoginForm, may_enter
from halo_site.page_policy import with_alpine
from halo_site.settings_page import settings_page


class HaloAdminSite(UnfoldAdminSite):
    """What a person needs to be let in is decided here for all pages; what they may do there, by each."""

    login_form = LoginForm
    index_title = "Dashboard"

    def has_permission(self, request: HttpRequest) -> bool:
        return may_enter(request)

    def admin_view(
        self, view: Callable[..., HttpResponseBase], cacheable: bool = False
    ) -> Callable[..., HttpResponseBase]:
        return with_alpine(super().admin_view(view, cacheable))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        return with_alpine(super().login)(request, extra_context)

    def extra_urls(self) -> list[URLPattern]:
        """unfold asks for these."""
        return [
            path("dashboard/", self.admin_view(self.dashboard), name="dashboard"),
            path("settings/", self.admin_view(self.settings), name="settings"),
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        return super().index(request, {**_position(), **_board(request), **(extra_context or {})})

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """Django's page of one app's tables: the menu says it better."""
        return redirect("admin:index")

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """The changing part of the first page alone."""
        return render(request, "halo/dashboard.html", _board(request))

    def settings(self, request: HttpRequest) -> HttpResponse:
        return settings_page(request, {**_position(), **self.each_context(request)})


def _position() -> dict[str, int]:
    """Where the events stand before a page reads anything: what comes later, it is told."""
    return {"halo_since": latest().event_id}


def _board(request: HttpRequest) -> dict[str, Any]:
    may_review = request.user.has_perm("workspaces.review")
    return {"board": read_dashboard(now=clock.now()), "may_review": may_review}
