"""Who may decide. Every verb asks here first, so that no page, command or endpoint can forget to."""

from __future__ import annotations

from typing import Literal

from django.contrib.auth.models import User

from evolution.errors import Refused

USE_FULL_ACCESS = "workspaces.use_full_access"
_WORDS = {"review": "decide on evolution runs", "rollback": "roll back applied changes"}


def require(user: User, permission: Literal["review", "rollback"]) -> None:
    """Raises Refused ``forbidden``."""
    if user.has_perm(f"workspaces.{permission}"):
        return
    raise Refused(
        "forbidden",
        f"{user.get_username()} may not {_WORDS[permission]}; an administrator can give the permission "
        f"workspaces.{permission}, for instance through the group Reviewers.",
        permission=f"workspaces.{permission}",
    )
