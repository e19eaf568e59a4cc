"""Live events once more in the scaled profile: rows on PostgreSQL, notices on a real Valkey server.

The tests themselves know neither: a second pytest gets ``HALO_TEST_DATABASE_URL`` and ``REDIS_URL``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import postgres_server
from tests.valkey import valkey_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.postgres
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["test_live.py", "live_on_postgresql.py"])
def test_in_the_scaled_profile(name: str, tmp_path: Path) -> None:
    with postgres_server(tmp_path) as database, valkey_server(tmp_path / "valkey") as redis:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", f"tests/site/{name}", "-q", "-p", "no:xdist"],
            cwd=ROOT,
            env={**os.environ, "HALO_TEST_DATABASE_URL": database, "REDIS_URL": redis},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
