"""Everything about rows and claims once more, on a PostgreSQL server of this run's own.

The tests themselves know no database: a second pytest gets ``HALO_TEST_DATABASE_URL``, which
``halo_site.settings.test`` honours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import postgres_server

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "test_transitions.py",
    "test_ticker.py",
    "test_races.py",
    "test_state_machine.py",
    "test_wrapper_process.py",
    "test_wrapper_stopped.py",
    "test_auto_apply.py",
    "test_scenarios.py",
    "test_archive.py",
    "test_archive_kill.py",
    "test_tick_plans.py",
)


@pytest.mark.postgres
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", FILES)
def test_on_postgresql(name: str, tmp_path: Path) -> None:
    with postgres_server(tmp_path) as url:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", f"tests/evolution/{name}", "-q", "-p", "no:xdist"],
            cwd=ROOT,
            env={**os.environ, "HALO_TEST_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
