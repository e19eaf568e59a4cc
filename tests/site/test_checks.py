"""The numbered system checks: what ``halo up`` says before it starts, and ``check --deploy`` as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from halo_site.env import read_database, read_redis

SQLITE = {"default": {"ENGINE": "django.db.backends.sqlite3"}}
POSTGRESQL = {"default": {"ENGINE": "django.db.backends.postgresql"}}


def said(number: str) -> list[str]:
    return [f"{found.msg} {found.hint}" for found in run_checks() if found.id == number]


@pytest.mark.parametrize(
    ("hosts", "tls", "warned"),
    [
        (["localhost", "127.0.0.1", "[::1]"], False, False),
        (["localhost", "halo.example.org"], False, True),
        (["*"], False, True),
        (["halo.example.org"], True, False),
    ],
)
def test_names_beyond_this_machine_without_tls(
    settings: Any, hosts: list[str], tls: bool, warned: bool
) -> None:
    settings.ALLOWED_HOSTS = hosts
    settings.HALO_TLS = tls

    found = said("halo.W001")

    assert bool(found) == warned
    if warned:
        assert hosts[-1] in found[0]
        assert "HALO_TLS=true" in found[0]


@pytest.mark.parametrize(
    ("redis", "databases", "warned"),
    [("redis://x", SQLITE, True), ("redis://x", POSTGRESQL, False), (None, SQLITE, False)],
)
def test_redis_beside_sqlite(
    settings: Any, redis: str | None, databases: dict[str, Any], warned: bool
) -> None:
    settings.REDIS_URL = redis
    settings.DATABASES = databases

    assert bool(said("halo.W002")) == warned


def test_a_home_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALO_HOME", str(tmp_path / "nowhere"))

    assert str(tmp_path / "nowhere") in said("halo.E001")[0]


@pytest.mark.parametrize(("name", "read"), [("REDIS_URL", read_redis), ("DATABASE_URL", read_database)])
def test_an_address_of_another_kind_is_refused_without_its_password(
    name: str, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "mysql://halo:s3cret@db/0")

    with pytest.raises(ImproperlyConfigured, match=f"{name} starts with 'mysql'") as refused:
        read()

    assert "s3cret" not in str(refused.value)
