"""Who is at the other end of a socket: a person with a browser, or a program with a token."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

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
