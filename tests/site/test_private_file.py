"""Who may read the embedded database."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("there_already", [False, True])
def test_the_database_is_its_owners_alone(tmp_path: Path, there_already: bool) -> None:
    home = tmp_path / "home"
    home.mkdir()
    database = home / "halo.sqlite3"
    if there_already:
        database.touch(0o644)
    subprocess.run(
        [sys.executable, "-m", "halo_site", "migrate"],
        env={"PATH": os.environ["PATH"], "HALO_HOME": str(home)},
        check=True,
        capture_output=True,
        umask=0o022,
    )
    assert database.stat().st_size > 0
    for path in home.glob("halo.sqlite3*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
