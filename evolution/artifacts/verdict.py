"""``auto-apply.json``: what the gates said, at every level, and the larger observation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core import atomic
from evolution.artifacts.files import AttemptFiles
from evolution.gates import Verdict


def write_verdict(folder: Path, verdict: Verdict, observation: str) -> None:
    atomic.write_json(AttemptFiles(folder).verdict, {**asdict(verdict), "observation": observation})


def read_verdict(folder: Path) -> dict[str, Any] | None:
    """As written, for pages; None when there is none that can be read."""
    try:
        value = json.loads(AttemptFiles(folder).verdict.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
