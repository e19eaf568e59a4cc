from __future__ import annotations

from django.contrib import admin

from core.db.admin import ReadOnlyAdmin
from evolution.models import EvolutionApply, EvolutionRun


@admin.register(EvolutionRun)
class EvolutionRunAdmin(ReadOnlyAdmin):
    list_display = (
        "__str__",
        "status",
        "phase",
        "score_avg",
        "user_hint",
        "workspace",
        "agent_id",
        "created_at",
    )
    list_filter = ("status", "has_observation", "workspace", "agent_id")
    list_select_related = ("workspace",)
    search_fields = ("id", "user_hint", "source_session_id")
    ordering = ("-id",)


@admin.register(EvolutionApply)
class EvolutionApplyAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "status", "phase", "approved_by", "workspace", "failure_reason", "created_at")
    list_filter = ("status", "workspace")
    list_select_related = ("workspace", "approved_by")
    search_fields = ("id", "failure_reason")
    ordering = ("-id",)
