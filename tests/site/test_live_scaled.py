"""Live events once more in the scaled profile: rows on PostgreSQL, notices on a real Valkey server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.again_on_postgresql import again_on_postgresql
from tests.valkey import valkey_server

FILES = ("test_live.py", "live_on_postgresql.py")


@pytest.mark.postgres
@pytest.mark.timeout(600)
def test_in_the_scaled_profile(tmp_path: Path) -> None:
    """The tests themselves know neither server: they hear of them by the environment."""
    with valkey_server(tmp_path / "valkey") as redis:
        again_on_postgresql((f"tests/site/{name}" for name in FILES), folder=tmp_path, REDIS_URL=redis)
