"""Somebody of each kind that meets a page."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.test import Client

KINDS = ("anonymous", "plain", "reviewer", "operator", "administrator")
_GROUPS = {"reviewer": "Reviewers", "operator": "Operators"}


def person(kind: str) -> User:
    """Not ``anonymous``. Nobody is staff: being in a group is enough."""
    user, _ = User.objects.get_or_create(
        username=f"a-{kind}", defaults={"is_superuser": kind == "administrator"}
    )
    if kind in _GROUPS:
        user.groups.add(Group.objects.get(name=_GROUPS[kind]))
    return user


def browser(kind: str) -> Client:
    client = Client()
    if kind != "anonymous":
        client.force_login(person(kind), backend="django.contrib.auth.backends.ModelBackend")
    return client
