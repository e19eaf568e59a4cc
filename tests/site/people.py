"""Somebody of each kind that meets a page."""

from __future__ import annotations

from django.contrib.auth.models import Group, Permission, User
from django.test import Client

KINDS = ("anonymous", "plain", "viewer", "chatter", "reviewer", "operator", "administrator")
_GROUPS = {"reviewer": "Reviewers", "operator": "Operators"}
_PERMISSIONS = {"viewer": ("view",), "chatter": ("view", "chat")}


def person(kind: str) -> User:
    """Not ``anonymous``. Nobody is staff: being in a group is enough."""
    user, _ = User.objects.get_or_create(
        username=f"a-{kind}", defaults={"is_superuser": kind == "administrator"}
    )
    if kind in _GROUPS:
        user.groups.add(Group.objects.get(name=_GROUPS[kind]))
    held = Permission.objects.filter(
        content_type__app_label="workspaces", codename__in=_PERMISSIONS.get(kind, ())
    )
    user.user_permissions.add(*held)
    return user


def browser(kind: str) -> Client:
    client = Client()
    if kind != "anonymous":
        client.force_login(person(kind), backend="django.contrib.auth.backends.ModelBackend")
    return client
