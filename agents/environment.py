"""Which environment variables a command inherits: few in the sandbox, all but secrets at ``full``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SECRET_NAMES = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "CO_API_KEY",
        "DATABASE_URL",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GROQ_API_KEY",
        "HALO_NODE_TOKEN",
        "HALO_SECRET_KEY",
        "MISTRAL_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_COMPATIBLE_API_KEY",
        "REDIS_URL",
        "SECRET_KEY",
    }
)
_SANDBOX_NAMES = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")
_settings_made: set[str] = set()


def remember_settings_made(names: Iterable[str]) -> None:
    """Variables that our settings set in this process (OTEL); an operator's own are not among them."""
    _settings_made.update(names)


def host_environment(
    secret: Iterable[str] = (), *, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """For a child that sees the host: all but secrets, named here or by settings (``secret``).

    Variables that settings made are left out too: the child's own settings may differ by now.
    """
    inherited = os.environ if environment is None else environment
    denied = SECRET_NAMES | _settings_made | set(secret)
    return {name: value for name, value in inherited.items() if name not in denied}


def sandbox_environment(*, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a sandboxed command, and for bubblewrap itself, whose environment the command can read."""
    inherited = os.environ if environment is None else environment
    kept = {name: inherited[name] for name in _SANDBOX_NAMES if name in inherited}
    interpreter = str(Path(sys.prefix) / "bin")
    return {
        **kept,
        "HOME": "/tmp",  # noqa: S108 - the sandbox's own
        "PATH": f"{interpreter}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "TERM": "dumb",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    }
