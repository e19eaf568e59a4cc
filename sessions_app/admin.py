"""Sessions to look at, with what was said in them. Looking never writes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse

from core.db.admin import ReadOnlyAdmin
from sessions_app.models import Session
from sessions_app.transcript_window import window


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ("title_or_id", "workspace", "agent_id", "access_level", "kind", "last_activity_at")
    list_filter = ("kind", "access_level", "workspace")
    list_select_related = ("workspace",)
    search_fields = ("id", "title")
    ordering = ("-last_activity_at",)
    fields = (
        *("id", "title", "workspace", "agent_id", "working_dir", "access_level", "kind"),
        *("exchange_count", "context_tokens", "total_output_tokens", "outside_data_at"),
        *("created_at", "last_activity_at", "archived_at"),
    )
    readonly_fields = fields

    @admin.display(description="Session", ordering="title")
    def title_or_id(self, session: Session) -> str:
        return session.title or session.pk

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        session = self.get_object(request, unquote(object_id))
        found = {}
        if session is not None and self.has_view_permission(request):
            shown = window(session, part=request.GET.get("part", ""), before=request.GET.get("before", ""))
            found = {"transcript": shown}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **found})
