"""Numbered system checks: what a wrong environment would only show later.

halo.E001  HALO_HOME can't be written
halo.W001  answers to names beyond this machine without HALO_TLS
halo.W002  REDIS_URL without DATABASE_URL: several web processes can't share one SQLite file across hosts
"""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from core.paths import halo_home

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "[::1]", "testserver"})


@register(Tags.files)
def home_is_writable(**options: Any) -> list[CheckMessage]:
    home = halo_home().root
    if home.is_dir() and os.access(home, os.W_OK | os.X_OK):
        return []
    return [
        Error(
            f"{home} can't be written.",
            hint="Give this user the folder, or name another one in HALO_HOME.",
            id="halo.E001",
        )
    ]


@register(Tags.security)
def tls_beyond_this_machine(**options: Any) -> list[CheckMessage]:
    hosts = set(getattr(settings, "ALLOWED_HOSTS", ())) - _THIS_MACHINE
    if not hosts or getattr(settings, "HALO_TLS", False):
        return []
    return [
        Warning(
            f"Answers to {', '.join(sorted(hosts))} over plain HTTP: passwords and prompts can be read on the way.",
            hint="Put a proxy that speaks TLS in front, and set HALO_TLS=true.",
            id="halo.W001",
        )
    ]


@register(Tags.database)
def redis_without_postgresql(**options: Any) -> list[CheckMessage]:
    engine = settings.DATABASES["default"]["ENGINE"]
    if not getattr(settings, "REDIS_URL", None) or not engine.endswith("sqlite3"):
        return []
    return [
        Warning(
            "REDIS_URL is set, DATABASE_URL isn't: SQLite serves one machine only.",
            hint="For several web processes set DATABASE_URL=postgres://...; for one, unset REDIS_URL.",
            id="halo.W002",
        )
    ]
