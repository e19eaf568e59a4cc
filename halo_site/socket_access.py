"""Who is at the other end of a socket: asked at the handshake, at what they ask for, and every minute.

A browser comes with its session cookie, and only from a page of this site. A program comes with
``Authorization: Bearer halo_...``; who brings this header is never tried as a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from core import clock
from core.db import api_tokens
from core.db.callers import Caller, user_of_session

VIEW = "workspaces.view"


def is_let_in(scope: Mapping[str, Any]) -> bool:
    """Asks the database. No page can make a browser send an Authorization header along, so it needs no origin."""
    if not _is_our_host(scope) or (not _brings_token(scope) and not is_same_origin(scope)):
        return False
    return caller_of(scope) is not None


def caller_of(scope: Mapping[str, Any]) -> Caller | None:
    """Who asks now; None for nobody, or nobody any more. Asks the database."""
    if not _brings_token(scope):
        user = user_of(scope)
        return None if user is None else Caller(user)
    kind, _, secret = _header(scope, b"authorization").partition(" ")
    token = api_tokens.recognise(secret.strip(), now=clock.now()) if kind.lower() == "bearer" else None
    return None if token is None else Caller(token.user, frozenset(token.scopes))


def is_same_origin(scope: Mapping[str, Any]) -> bool:
    """Whether a page of this very site opened the socket: browsers send cookies along from any page."""
    host = _header(scope, b"host").lower()
    try:
        origin = urlsplit(_header(scope, b"origin").lower())
        wanted = "https" if settings.HALO_TLS else "http"
        return origin.scheme == wanted and _with_port(origin.netloc, wanted) == _with_port(host, wanted)
    except ValueError:
        return False


def user_of(scope: Mapping[str, Any]) -> User | None:
    """Who is logged in with the session cookie now; None for nobody. Asks the database."""
    key = parse_cookie(_header(scope, b"cookie")).get(settings.SESSION_COOKIE_NAME)
    return user_of_session(key) if key else None


def _is_our_host(scope: Mapping[str, Any]) -> bool:
    domain, _ = split_domain_port(_header(scope, b"host").lower())
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _brings_token(scope: Mapping[str, Any]) -> bool:
    return any(key == b"authorization" for key, _ in scope["headers"])


def _header(scope: Mapping[str, Any], name: bytes) -> str:
    """Empty when it is missing, or there more than once."""
    values = [value for key, value in scope["headers"] if key == name]
    return str(values[0].decode("latin-1")) if len(values) == 1 else ""


def _with_port(netloc: str, scheme: str) -> str:
    port = urlsplit(f"//{netloc}").port or {"http": 80, "https": 443}[scheme]
    return f"{urlsplit(f'//{netloc}').hostname}:{port}"
