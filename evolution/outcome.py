"""What a rollback did, as its row keeps it and as people read it. No Django."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from evolution.rollback import RollbackOutcome

WORDS = {
    "refused": "refused",
    "restored": "brought back",
    "removed": "taken out",
    "removedDirs": "folders removed",
    "keptDirs": "folders kept (they hold other files, and still hide the global ones)",
    "left": "left as they are",
    "kept": "texts that made way, kept below .halo/",
}


def to_json(outcome: RollbackOutcome, *, stage: PurePosixPath) -> dict[str, Any]:
    """``stage``: the rollback's own, relative to ``.halo``; what it kept of people's texts is named from there."""
    return {
        "restored": list(outcome.restored),
        "removed": list(outcome.removed),
        "removedDirs": list(outcome.removed_dirs),
        "keptDirs": list(outcome.kept_dirs),
        "left": list(outcome.left),
        "kept": [(stage / path).as_posix() for path in outcome.kept],
    }


def said(values: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """A JSON account as labels and texts, empty entries left out."""
    return [
        (WORDS.get(key, key), ", ".join(map(_one, value)) if isinstance(value, list) else _one(value))
        for key, value in (values or {}).items()
        if value not in ([], "", None)
    ]


def _one(value: Any) -> str:
    """A file of an account with its state, or whatever it is."""
    if isinstance(value, Mapping) and "rel" in value:
        return f"{value['rel']} ({value.get('state', '?')})"
    return str(value)
