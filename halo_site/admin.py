"""Users and groups in unfold's clothes; what a library registers for itself and nobody needs is taken away."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django_q.models import Failure, OrmQ, Schedule, Success
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

# A schedule names any Python function, so a form for it is a shell for whoever may use it.
admin.site.unregister([Failure, OrmQ, Schedule, Success])
admin.site.unregister([User, Group])


@admin.register(User)
class HaloUserAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class HaloGroupAdmin(GroupAdmin, ModelAdmin):
    pass
