"""Starting a wrapper: a process of its own that outlives whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.paths import halo_home
from core.processes import spawn_detached

PROJECT_ROOT = Path(__file__).resolve().parents[1]

Verb = Literal["run", "apply", "rollback"]


class SpawnFailed(Exception):
    """The message says why."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a wrapper is started for: one attempt of one row."""

    verb: Verb
    row_id: str
    attempt: int

    @property
    def arguments(self) -> list[str]:
        return ["evo_wrapper", self.verb, self.row_id, "--attempt", str(self.attempt)]

    @property
    def log(self) -> Path:
        kind = "run" if self.verb == "run" else "apply"
        return halo_home().evolution_logs / f"{kind}-{self.row_id}.log"


def spawn_wrapper(order: Order) -> None:
    """Start the wrapper on the slim settings and leave it to itself. Raises SpawnFailed."""
    environment = {
        **os.environ,
        "HALO_HOME": str(halo_home().root),
        "DJANGO_SETTINGS_MODULE": "halo_site.settings.slim",
    }
    environment.pop("HALO_SESSION", None)
    try:
        spawn_detached(
            [sys.executable, "-m", "halo_site", *order.arguments],
            environment=environment,
            folder=PROJECT_ROOT,
            log=order.log,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SpawnFailed(f"The wrapper could not be started: {error}") from error
