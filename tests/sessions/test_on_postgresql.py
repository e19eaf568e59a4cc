"""Queue, trees and debts once more, on a PostgreSQL server of this run's own (see the one of evolution)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import postgres_server

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "test_queue.py",
    "test_reports.py",
    "test_sub_sessions.py",
    "test_relay.py",
    "test_tree_machine.py",
    "test_lock_order.py",
)


@pytest.mark.postgres
@pytest.mark.timeout(900)
def test_on_postgresql(tmp_path: Path) -> None:
    with postgres_server(tmp_path) as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:xdist"),
                *(f"tests/sessions/{name}" for name in FILES),
            ],
            cwd=ROOT,
            env={**os.environ, "HALO_TEST_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
