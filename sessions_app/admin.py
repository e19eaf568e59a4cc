"""Sessions to look at, with what was said in them. Looking never writes."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path

from core import clock
from core.db.admin import ReadOnlyAdmin, age_column, note_since, since
from sessions_app.chat_pages import chat_page, new_session_page
from sessions_app.models import Session
from sessions_app.send_message import CHAT
from sessions_app.session_pages import archive_page, decide_authoring, decisions, rename
from sessions_app.transcript_window import window


class Place(admin.SimpleListFilter):
    title = "place in the tree"
    parameter_name = "place"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("root", "Root sessions"), ("below", "Sub-sessions")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        if self.value() == "root":
            return queryset.filter(parent=None)
        return queryset.exclude(parent=None) if self.value() == "below" else queryset


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_before_template = "sessions/list_before.html"
    followed = "session"
    list_display = (
        *("title_or_id", "workspace", "agent", "access", "what_for"),
        age_column("last_activity_at", "Last active"),
    )
    list_filter = (Place, "kind", "access_level", "workspace")
    list_select_related = ("workspace",)
    search_fields = ("id", "title")
    ordering = ("-last_activity_at",)
    fields = readonly_fields = ("id",)  # the page's own template shows the row

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("new/", view(self.new), name="sessions_app_session_new"),
            path("<str:object_id>/chat/", view(self.chat), name="sessions_app_session_chat"),
            path("<str:object_id>/archive/", view(self.archive), name="sessions_app_session_archive"),
            path("<str:object_id>/rename/", view(self.rename), name="sessions_app_session_rename"),
            path("<str:object_id>/authoring/", view(self.authoring), name="sessions_app_session_authoring"),
            *super().get_urls(),
        ]

    @admin.display(description="Session", ordering="title")
    def title_or_id(self, session: Session) -> str:
        return ("" if session.is_root else "↳ ") + (session.title or session.pk)

    @admin.display(description="Agent", ordering="agent_id")
    def agent(self, session: Session) -> str:
        return session.agent_id

    @admin.display(description="Access", ordering="access_level")
    def access(self, session: Session) -> str:
        return session.access_level

    @admin.display(description="Kind", ordering="kind")
    def what_for(self, session: Session) -> str:
        return session.kind

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        note_since(request)
        session = self.get_object(request, unquote(object_id))
        found: dict[str, Any] = since(request)
        if session is not None and self.has_view_permission(request):
            found |= decisions(session, cast(User, request.user), now=clock.now())
            found["transcript"] = window(
                session, part=request.GET.get("part", ""), before=request.GET.get("before", "")
            )
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **found})

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may_chat = {"may_chat": request.user.has_perm(CHAT)}
        return super().changelist_view(request, {**(extra_context or {}), **may_chat})

    def chat(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return chat_page(request, self._looked_at(request, object_id), self._context(request))

    def archive(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return archive_page(request, self._looked_at(request, object_id), self._context(request))

    def rename(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return rename(request, self._looked_at(request, object_id))

    def authoring(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return decide_authoring(request, self._looked_at(request, object_id))

    def new(self, request: HttpRequest) -> HttpResponse:
        self._may_look(request)
        return new_session_page(request, self._context(request))

    def _looked_at(self, request: HttpRequest, object_id: str) -> Session:
        self._may_look(request)
        session = self.get_object(request, unquote(object_id).replace("\0", ""))
        if session is None:
            raise Http404("There is no such session.")
        return session

    def _context(self, request: HttpRequest) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "opts": self.opts}

    def _may_look(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
        note_since(request)
