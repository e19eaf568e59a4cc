"""Who is at the other end of a socket, and whether they may look: asked at the handshake and every minute after."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

VIEW = "workspaces.view"


def is_same_origin(scope: Mapping[str, Any]) -> bool:
    """Whether a page of this very site opened the socket: browsers send cookies along from any page."""
    host = _header(scope, b"host").lower()
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        return False
    try:
        origin = urlsplit(_header(scope, b"origin").lower())
        wanted = "https" if settings.HALO_TLS else "http"
        return origin.scheme == wanted and _with_port(origin.netloc, wanted) == _with_port(host, wanted)
    except ValueError:
        return False


def user_of(scope: Mapping[str, Any]) -> User | None:
    """Who is logged in with the session cookie now; None for nobody. Asks the database."""
    key = parse_cookie(_header(scope, b"cookie")).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    store = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(SimpleNamespace(session=store))  # type: ignore[arg-type]  # it reads nothing but the session
    return user if isinstance(user, User) and user.is_active else None


def may_view(user: User) -> bool:
    """Asks the database."""
    return user.has_perm(VIEW)


def _header(scope: Mapping[str, Any], name: bytes) -> str:
    """Empty when it is missing, or there more than once."""
    values = [value for key, value in scope["headers"] if key == name]
    return str(values[0].decode("latin-1")) if len(values) == 1 else ""


def _with_port(netloc: str, scheme: str) -> str:
    port = urlsplit(f"//{netloc}").port or {"http": 80, "https": 443}[scheme]
    return f"{urlsplit(f'//{netloc}').hostname}:{port}"
