"""The demo as a newcomer runs it: real processes, an empty home, and the printed way back really works."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "halo_site" / "sample" / "workspace"


def _surface(folder: Path) -> dict[str, bytes]:
    halo = folder / ".halo"
    kept = ("INSTRUCTIONS.md", "INDEX.md", "USER.md", "agents", "prompts", "skills")
    return {
        path.relative_to(halo).as_posix(): path.read_bytes()
        for path in sorted(halo.rglob("*"))
        if path.is_file() and path.relative_to(halo).parts[0] in kept
    }


def _tokens(home: Path) -> list[str]:
    """The uses of which the day has a figure."""
    with closing(sqlite3.connect(home / "halo.sqlite3")) as database:
        rows = database.execute(
            "SELECT use FROM sessions_app_tokensonday WHERE input_tokens > 0 AND output_tokens > 0 ORDER BY use"
        )
        return [use for (use,) in rows]


@pytest.mark.timeout(300)
def test_the_demo_publishes_a_change_and_its_rollback_line_takes_it_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "HALO_HOME": str(home)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)

    done = subprocess.run(
        [sys.executable, "-m", "halo_site", "demo"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no language model" in done.stdout
    workspace = tmp_path / "halo-demo" / "shop-1"
    published, original = _surface(workspace), _surface(SAMPLE)
    changed = [rel for rel in published if published[rel] != original.get(rel)]
    assert changed, "the demo changed no live file"
    for rel in changed:
        assert f"draft/{rel}" in done.stdout
    assert _tokens(home) == ["chat", "evolution"]
    rollback = next(line for line in done.stdout.splitlines() if " evo rollback apply-" in line)

    back = subprocess.run(
        ["/bin/sh", "-c", rollback.strip()],
        cwd=ROOT,
        env={key: value for key, value in environment.items() if key != "HALO_HOME"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert back.returncode == 0, back.stderr
    # On a loaded machine it answers after 5 s and the wrapper goes on: follow it to its end.
    apply = rollback.split(" rollback ")[1].split()[0]
    subprocess.run(
        [sys.executable, "-m", "halo_site", "evo", "show", apply, "--follow"],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    assert _surface(workspace) == original
