"""Bearer tokens of the REST API: made, recognised, revoked. The secret itself is kept nowhere."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import QuerySet

from core.db.models import ApiToken
from core.db.text import storable

PREFIX = "halo_"
MAX_DAYS = 366
SCOPES = {
    "view": "read runs, applies, sessions, workspaces and events",
    "review": "approve, reject, retry, cancel, try again, delete; retire and restore kept scenarios",
    "rollback": "roll applied changes back",
    "chat": "start sessions, send messages, stop and interrupt",
    "use_full_access": "ask for evolution runs, and use sessions of full access",
    "change_settings": "read and change settings",
}
"""What a token may be narrowed to; named like the permissions, which its user needs as well."""


class TokenRefused(Exception):
    """The token can't be made like that; nothing was stored. ``code`` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Issued:
    """``secret`` is shown to the person now, or never."""

    token: ApiToken
    secret: str


def issue(*, user: User, name: str, scopes: Collection[str], days: int, now: datetime) -> Issued:
    """Raises TokenRefused ``name_unusable``, ``unknown_scope``, ``no_scope`` or ``lifetime_unusable``."""
    name = storable(name).strip()
    if not name or len(name) > 100:
        raise TokenRefused("name_unusable", "Give the token a name of 1 to 100 characters.")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise TokenRefused("unknown_scope", f"There is no scope {unknown[0]!r}; scopes: {', '.join(SCOPES)}.")
    if not scopes:
        raise TokenRefused("no_scope", f"A token needs at least one scope: {', '.join(SCOPES)}.")
    if not 1 <= days <= MAX_DAYS:
        raise TokenRefused("lifetime_unusable", f"A token lives from 1 to {MAX_DAYS} days.")
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        digest=_digest(secret),
        scopes=sorted(set(scopes)),
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    return Issued(token, secret)


def recognise(secret: str, *, now: datetime) -> ApiToken | None:
    """The live token of an active user, or None."""
    if not secret.startswith(PREFIX) or len(secret) > 100:
        return None
    return live_tokens(now).filter(digest=_digest(secret)).first()


def user_of(token_id: int, *, now: datetime) -> User | None:
    """Whose it is, as they are now; None for a token that counts no more."""
    token = live_tokens(now).filter(pk=token_id).first()
    return None if token is None else token.user


def live_tokens(now: datetime) -> QuerySet[ApiToken]:
    """Neither revoked nor expired, of an active user."""
    return ApiToken.objects.select_related("user").filter(
        revoked_at=None, expires_at__gt=now, user__is_active=True
    )


def revoke(token_id: int, *, now: datetime) -> bool:
    """From the next request on it is a stranger's. False: there is no such token, or it was revoked before."""
    return ApiToken.objects.filter(pk=token_id, revoked_at=None).update(revoked_at=now) == 1


def _digest(secret: str) -> str:
    """Plain SHA-256 is enough: 256 random bits can't be guessed from their hash."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
