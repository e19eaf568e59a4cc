"""Machine-written rows are looked at, never edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from core.db.models import Event

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = ModelAdmin  # the type checker knows Django's alone


class ReadOnlyAdmin(_Base):
    """Lists and shows rows to whoever has ``workspaces.view``; nobody adds, changes or deletes here."""

    list_per_page = 50
    show_full_result_count = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("workspaces.view")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("workspaces.view")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("id", "kind", "object_id", "payload", "created_at")
    list_filter = ("kind",)
    search_fields = ("object_id",)
    ordering = ("-id",)
