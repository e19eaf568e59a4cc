"""The strict reader of Halo's environment: an odd value is refused by name, never guessed at.

========================  ==========================================================================
``HALO_HOME``             the machine-wide folder (default ``~/.halo``)
``HALO_HOST``             this machine's name in rows and lock files (default: its host name)
``HALO_TLS``              ``true`` behind a proxy that speaks TLS and sets ``X-Forwarded-Proto``
``DATABASE_URL``          ``postgres://...``; without it SQLite in ``HALO_HOME``
``REDIS_URL``             ``redis://...`` for the channel layer; without it everything is in one process
``ALLOWED_HOSTS``         the names the web process answers to, separated by commas
``SECRET_KEY``            else one is made once and kept in ``HALO_HOME/secrets``
========================  ==========================================================================
"""

from __future__ import annotations

import os
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off", ""})
_DATABASES = frozenset({"django.db.backends.postgresql", "django.db.backends.sqlite3"})


def read_bool(name: str, *, default: bool) -> bool:
    text = os.environ.get(name)
    if text is None:
        return default
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ImproperlyConfigured(f"{name} is {text!r}; write true or false.")


def read_names(name: str, *, default: tuple[str, ...]) -> list[str]:
    text = os.environ.get(name)
    names = list(default) if text is None else [word.strip() for word in text.split(",") if word.strip()]
    if any(" " in word or "/" in word for word in names):
        raise ImproperlyConfigured(f"{name} is {text!r}; write host names separated by commas.")
    return names


def read_database() -> dict[str, Any] | None:
    """Django's settings for ``DATABASE_URL``; None when it isn't set."""
    text = os.environ.get("DATABASE_URL")
    if not text:
        return None
    database: dict[str, Any] = environ.Env.db_url_config(text)
    if database.get("ENGINE") not in _DATABASES or not database.get("NAME"):
        scheme = text.split(":", 1)[0]
        raise ImproperlyConfigured(
            f"DATABASE_URL starts with {scheme!r}; Halo runs on postgres://USER@HOST:PORT/NAME or, "
            "without DATABASE_URL, on SQLite in HALO_HOME."
        )
    return database


def read_redis() -> str | None:
    text = os.environ.get("REDIS_URL")
    if text and not text.startswith(("redis://", "rediss://", "unix://")):
        scheme = text.split(":", 1)[0]  # the rest may hold a password
        raise ImproperlyConfigured(f"REDIS_URL starts with {scheme!r}; write redis://HOST:PORT/NUMBER.")
    return text or None
