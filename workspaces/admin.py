from __future__ import annotations

from django.contrib import admin

from core.db.admin import ReadOnlyAdmin
from workspaces.models import Workspace


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnlyAdmin):
    list_display = ("name", "path", "host", "created_at")
    search_fields = ("path",)
    ordering = ("path",)
