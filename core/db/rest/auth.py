"""Who calls: a bearer token or a session cookie with CSRF. What an operation needs is declared with ``guard``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from core import clock
from core.db import api_tokens, callers
from core.db.rest.errors import ApiError


@dataclass(frozen=True, slots=True)
class Caller:
    """``token_id`` is None, and ``session_key`` set, for a browser's session."""

    user: User
    permission: str
    token_id: int | None = None
    session_key: str | None = None
    scopes: tuple[str, ...] | None = None

    @property
    def person(self) -> callers.Caller:
        """Whom verbs ask what else the caller may."""
        return callers.Caller(self.user, self.scopes)

    def still_may(self) -> bool:
        """Asked again by answers that last: whether token or session, user and permission are still there."""
        if self.token_id is not None:
            user = api_tokens.user_of(self.token_id, now=clock.now())
        else:
            user = callers.user_of_session(self.session_key or "")
        return user is not None and user.pk == self.user.pk and user.has_perm(self.permission)


class Bearer(AuthBase):
    """``Authorization: Bearer halo_...``. A request that brings this header is never tried as a session."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, scope: str, permission: str) -> None:
        self.scope = scope
        self.permission = permission
        super().__init__()

    def __call__(self, request: HttpRequest) -> Caller | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        kind, _, secret = header.partition(" ")
        token = api_tokens.recognise(secret.strip(), now=clock.now()) if kind.lower() == "bearer" else None
        if token is None:
            raise ApiError(401, "bad_token", "This token is unknown, expired or revoked.")
        if self.scope not in token.scopes:
            raise ApiError(
                403, "scope", f"This token has no scope {self.scope!r}; make one that has.", scope=self.scope
            )
        _require(token.user, self.permission)
        return Caller(token.user, self.permission, token_id=token.pk, scopes=tuple(token.scopes))


class SessionCookie(AuthBase):
    """The cookie of the admin's login; what changes something needs the CSRF token as well."""

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = "sessionid"

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__()

    def __call__(self, request: HttpRequest) -> Caller | None:
        if not request.user.is_authenticated:
            return None
        if check_csrf(request) is not None:
            raise ApiError(
                403, "csrf", "The CSRF token is missing or wrong; send the csrftoken cookie as X-CSRFToken."
            )
        user = User.objects.get(pk=request.user.pk)
        _require(user, self.permission)
        return Caller(user, self.permission, session_key=request.session.session_key)


def guard(scope: str, permission: str, *, at_full: str = "") -> dict[str, Any]:
    """For an operation's declaration: a token needs ``scope``, and its user or the session's ``permission``.

    ``at_full``: what the operation itself asks for as well, on a session of full access.
    """
    if scope not in api_tokens.SCOPES:
        raise ValueError(f"{scope!r} is no scope.")
    shown = {"x-scope": scope, "x-permission": permission}
    if at_full:
        shown["x-permission-at-full-access"] = at_full
    return {"auth": [Bearer(scope, permission), SessionCookie(permission)], "openapi_extra": shown}


def caller_of(request: HttpRequest) -> Caller:
    """Whoever passed the operation's ``guard``."""
    return cast(Caller, request.auth)  # type: ignore[attr-defined]


def _require(user: User, permission: str) -> None:
    if not user.has_perm(permission):
        raise ApiError(
            403,
            "forbidden",
            f"{user.get_username()} lacks the permission {permission}; an administrator can give it.",
            permission=permission,
        )
