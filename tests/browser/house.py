"""A Halo of its own for the browser: a home, furnished workspaces, and ``halo up`` on a free port."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Made:
    """What one entry of ``runs`` became; ``apply`` is empty where nothing was approved."""

    run: str
    apply: str
    session: str


@dataclass(frozen=True, slots=True)
class Place:
    path: Path
    workspace: int
    runs: list[Made]
    session: str = ""

    @property
    def rules(self) -> Path:
        """The live file that every run of the sample changes."""
        return self.path / ".halo/agents/support/AGENT.md"


@dataclass(frozen=True, slots=True)
class House:
    home: Path
    folder: Path
    address: str

    def furnish(self, *wanted: dict[str, Any]) -> dict[str, Place]:
        return furnish(self.home, self.folder, *wanted)

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """A command of another process on the same home; its standard output."""
        return run_python(self.home, "-m", "halo_site", *arguments, stdin=stdin)


def furnish(home: Path, folder: Path, *wanted: dict[str, Any]) -> dict[str, Place]:
    folder.mkdir(parents=True, exist_ok=True)
    printed = run_python(home, "-m", "tests.browser.furnish", str(folder), stdin=json.dumps(wanted))
    return {
        name: Place(
            path=Path(made["path"]),
            workspace=made["workspace"],
            session=made["session"],
            runs=[Made(run["run"], run["apply"] or "", run["session"]) for run in made["runs"]],
        )
        for name, made in json.loads(printed).items()
    }


def run_python(home: Path, *arguments: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(home),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HALO_HOME": str(home), "DJANGO_SETTINGS_MODULE": "halo_site.settings.web"}


@contextmanager
def serve(home: Path, folder: Path) -> Iterator[House]:
    """``halo up --no-cluster`` until the end of the block; nothing of it is left behind."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "halo_site", "up", "--no-cluster", "--port", "0"],
        cwd=ROOT,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=(folder / "server.log").open("w"),
        text=True,
    )
    try:
        yield House(home, folder, _address(process))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"Halo is at (http://\S+)/", line):
            return found[1]
    raise AssertionError(f"it did not come up:\n{''.join(said)}")
