"""Users and groups in unfold's clothes; what a library registers for itself and nobody needs is taken away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Field, ManyToManyField
from django_q.models import Failure, OrmQ, Schedule, Success
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultiple

from core.db.admin import TitledAdmin

# A schedule names any Python function, so a form for it is a shell for whoever may use it.
admin.site.unregister([Failure, OrmQ, Schedule, Success])
admin.site.unregister([User, Group])


# Boxes to tick, in place of Django's two lists with arrows: they fit a narrow window, can be walked by Tab, and say to
# a screen reader what they are.
_TICKED: Mapping[type[Field[Any, Any]], Mapping[str, Any]] = {
    ManyToManyField: {"widget": UnfoldAdminCheckboxSelectMultiple}
}


@admin.register(User)
class HaloUserAdmin(TitledAdmin, UserAdmin, ModelAdmin):
    list_title = "People"
    filter_horizontal = ()
    formfield_overrides = _TICKED
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class HaloGroupAdmin(TitledAdmin, GroupAdmin, ModelAdmin):
    filter_horizontal = ()
    formfield_overrides = _TICKED
