"""Tests once more, on a PostgreSQL server of their own.

The tests themselves know no database: a second pytest gets ``HALO_TEST_DATABASE_URL``, which
``halo_site.settings.test`` honours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.postgres import postgres_server

ROOT = Path(__file__).resolve().parents[1]


def again_on_postgresql(files: Iterable[str], *, folder: Path, **environment: str) -> None:
    """``files`` relative to the repository, ``environment`` for them beside ours. Raises AssertionError."""
    with postgres_server(folder) as url:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *files, "-q", "-p", "no:xdist"],
            cwd=ROOT,
            env={**os.environ, **environment, "HALO_TEST_DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
