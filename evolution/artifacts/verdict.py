"""``auto-apply.json``: what the gates said, at every level, and the larger observation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core import atomic
from evolution.artifacts.files import AttemptFiles
from evolution.gates import Gate, Verdict


def write_verdict(folder: Path, verdict: Verdict, observation: str) -> None:
    atomic.write_json(AttemptFiles(folder).verdict, {**asdict(verdict), "observation": observation})


def read_verdict(folder: Path) -> dict[str, Any] | None:
    """As written, for pages; None when there is none that can be read."""
    try:
        value = json.loads(AttemptFiles(folder).verdict.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def gates_of(verdict: dict[str, Any] | None) -> list[Gate]:
    """What each gate said; empty when that isn't known."""
    said = (verdict or {}).get("gates")
    if not isinstance(said, list):
        return []
    return [
        Gate(*(str(gate.get(name, "")) for name in ("name", "reason", "words")))
        for gate in said
        if isinstance(gate, dict)
    ]
