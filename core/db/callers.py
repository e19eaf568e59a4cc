"""Who is at the other end of a socket: a person with a browser, or a program with a token."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User


@dataclass(frozen=True, slots=True)
class Caller:
    """``scopes``: what a token is narrowed to; None for a browser's session, which may what its user may."""

    user: User
    scopes: Collection[str] | None = None

    def may(self, permission: str) -> bool:
        """``workspaces.chat``; a scope is named like the permission it stands for. Asks the database."""
        if self.scopes is not None and permission.partition(".")[2] not in self.scopes:
            return False
        return self.user.has_perm(permission)


def user_of_session(key: str) -> User | None:
    """Who is logged in with this session now; nobody once it has ended or their password is another."""
    store = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(SimpleNamespace(session=store))  # type: ignore[arg-type]  # it reads nothing but the session
    return user if isinstance(user, User) and user.is_active else None
