"""Machine-written rows are looked at, never edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from core.db.models import Event

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = admin.ModelAdmin  # generic for the type checker alone


class ReadOnlyAdmin(_Base):
    """Lists and shows rows to whoever has the view permission; nobody adds, changes or deletes here."""

    list_per_page = 50
    show_full_result_count = False

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
