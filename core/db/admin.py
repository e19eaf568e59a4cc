"""Machine-written rows are looked at, never edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from unfold.admin import ModelAdmin

from core import clock
from core.db import api_tokens
from core.db.events import latest
from core.db.models import ApiToken, Event
from core.db.templatetags.moments import ago
from core.db.text import storable

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = ModelAdmin  # the type checker knows Django's alone


_SINCE = "halo.since"


def note_since(request: HttpRequest) -> None:
    """Where the events stand before a page reads anything: what comes later, the page has to be told."""
    request.META[_SINCE] = latest().event_id


def since(request: HttpRequest) -> dict[str, int]:
    """For the context of a page that follows live; its base template makes a ``meta`` of it."""
    return {"halo_since": request.META[_SINCE]} if _SINCE in request.META else {}


def age_column(field: str, title: str) -> Callable[[Any], str]:
    """For ``list_display``: how long ago, with the exact moment as its title."""

    @admin.display(description=title, ordering=field)
    def column(row: Any) -> str:
        return ago(getattr(row, field)) or "-"

    column.__name__ = field
    return column


class TitledAdmin(_Base):
    """Pages that are called what they hold: ``Sessions``, not "Select session to view".

    In an address that nobody was given, a text or number that no column can hold finds nothing, and is no fault.
    """

    list_title = ""

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        if any("\0" in text for _, texts in request.GET.lists() for text in texts):
            raise IncorrectLookupParameters
        try:
            return super().get_changelist_instance(request)
        except OverflowError as error:
            raise IncorrectLookupParameters from error

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return super().get_object(request, storable(object_id), from_field)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        title = self.list_title or capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().history_view(
            request, object_id, {"title": "Decisions so far", **(extra_context or {})}
        )


class ReadOnlyAdmin(TitledAdmin):
    """Lists and shows rows to whoever has ``workspaces.view``; nobody adds, changes or deletes here."""

    list_per_page = 50
    show_full_result_count = False
    change_list_template = "halo/followed_list.html"
    followed = ""
    """The kinds of events, or topics, that move the list on an open page."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        note_since(request)
        given = {"halo_topics": self.followed, **since(request), **(extra_context or {})}
        return super().changelist_view(request, given)

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
    list_display = ("id", "kind", "object_id", "payload", age_column("created_at", "When"))
    list_filter = ("kind",)
    search_fields = ("object_id",)
    ordering = ("-id",)
    followed = "evolution session settings"


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Made by ``halo token create``; here they are seen, without their digests, and revoked."""

    list_display = (
        *("id", "name", "user", "scopes"),
        *(age_column("created_at", "Made"), "expires_at", age_column("revoked_at", "Revoked")),
    )
    list_title = "Tokens"
    list_select_related = ("user",)
    search_fields = ("name", "user__username")
    ordering = ("-id",)
    exclude = ("digest",)
    actions = ("revoke",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("core.view_apitoken") or self.has_revoke_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """A digest can't be asked for piece by piece."""
        return not lookup.startswith("digest") and super().lookup_allowed(lookup, value, request)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("core.change_apitoken")

    @admin.action(description="Revoke: they open nothing from now on", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        revoked = 0
        for token in queryset:
            if api_tokens.revoke(token.pk, now=clock.now()):
                revoked += 1
                self.log_change(request, token, "Revoked.")
        self.message_user(request, f"{revoked} revoked.")
