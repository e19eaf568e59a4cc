"""What a home needs before anything runs in it: tables, platform files, a first administrator."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import transaction

from core.paths import HaloHome
from workspaces.seed import seed


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    """``password`` is shown once and stored nowhere but as its hash."""

    username: str
    password: str


def prepare(home: HaloHome) -> None:
    """Bring database and platform files up to this version; safe to repeat and to run twice at once."""
    home.root.mkdir(parents=True, exist_ok=True)
    call_command("migrate", verbosity=0, interactive=False)
    seed(home)


def ensure_admin() -> FirstAdmin | None:
    """A first superuser for an installation that has none; None when there is one already."""
    with transaction.atomic():
        if User.objects.filter(is_superuser=True).exists():
            return None
        admin = FirstAdmin(username=_free_name("admin"), password=secrets.token_urlsafe(12))
        User.objects.create_superuser(admin.username, password=admin.password)
    return admin


def ensure_reviewer(username: str) -> User:
    """A user of the group Reviewers who can't log in: for the demo, and for scripts that decide."""
    user, created = User.objects.get_or_create(username=username)
    if created:
        user.set_unusable_password()
        user.save()
        user.groups.add(Group.objects.get(name="Reviewers"))
    return user


def _free_name(name: str) -> str:
    taken = set(User.objects.filter(username__startswith=name).values_list("username", flat=True))
    return name if name not in taken else f"{name}-{secrets.token_hex(3)}"
