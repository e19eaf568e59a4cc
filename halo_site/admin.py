"""Users and groups in unfold's clothes; what a library registers for itself and nobody needs is taken away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Field, ManyToManyField, Q, QuerySet
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultiple

from core.db.admin import TitledAdmin, age_column
from workspaces.models import Workspace

# A schedule names any Python function, so a form for it is a shell for whoever may use it.
admin.site.unregister([Failure, OrmQ, Schedule, Success])
admin.site.unregister([User, Group])


# Boxes to tick, in place of Django's two lists with arrows: they fit a narrow window, can be walked by Tab, and say to
# a screen reader what they are.
_TICKED: Mapping[type[Field[Any, Any]], Mapping[str, Any]] = {
    ManyToManyField: {"widget": UnfoldAdminCheckboxSelectMultiple}
}


_OURS = Q(
    content_type__app_label="workspaces", codename__in=[code for code, _ in Workspace._meta.permissions]
)
_THEIRS = Q(content_type__app_label="auth", content_type__model__in=("user", "group"))
_TOKENS = Q(content_type__app_label="core", codename__in=("view_apitoken", "change_apitoken"))


class _PermissionsAdmin(TitledAdmin):
    """Offers the permissions that some page or verb asks for, by what they allow."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        if db_field.remote_field.model is not Permission:
            return super().formfield_for_manytomany(db_field, request, **kwargs)
        asked_for = Permission.objects.filter(_OURS | _THEIRS | _TOKENS)
        kwargs["queryset"] = asked_for.order_by("-content_type__app_label", "content_type__model", "pk")
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if isinstance(field, ModelMultipleChoiceField):
            setattr(field, "label_from_instance", lambda permission: permission.name)  # noqa: B010 - Django's own hook
        return field


@admin.register(User)
class HaloUserAdmin(_PermissionsAdmin, UserAdmin, ModelAdmin):
    """Nobody has to be "staff": a permission or a group is what lets in (halo_site.login)."""

    list_title = "People"
    list_display = ("username", "email", "in_groups", "is_active", age_column("last_login", "Last login"))
    list_filter = ("groups", "is_active", "is_superuser")
    filter_horizontal = ()
    formfield_overrides = _TICKED
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Permissions", {"fields": ("is_active", "is_superuser", "groups", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        people: QuerySet[User] = super().get_queryset(request)
        return people.prefetch_related("groups")

    @admin.display(description="Groups")
    def in_groups(self, user: User) -> str:
        names = ", ".join(group.name for group in user.groups.all())
        return names or ("everything" if user.is_superuser else "")


@admin.register(Group)
class HaloGroupAdmin(_PermissionsAdmin, GroupAdmin, ModelAdmin):
    filter_horizontal = ()
    formfield_overrides = _TICKED
