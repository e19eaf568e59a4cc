from __future__ import annotations

from django.contrib import admin

from core.db.admin import ReadOnlyAdmin
from sessions_app.models import Session


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ("id", "title", "workspace", "agent_id", "access_level", "kind", "last_activity_at")
    list_filter = ("kind", "access_level", "workspace")
    list_select_related = ("workspace",)
    search_fields = ("id", "title")
    ordering = ("-last_activity_at",)
