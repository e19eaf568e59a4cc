"""What a person has to look at when no machine goes on: the files of the snapshot, each as it is live now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core import safe_json
from core.paths import UnsafePathError, checked_relative
from evolution.models import EvolutionApply
from evolution.surface_look import look


def account_of(apply: EvolutionApply, *, reason: str) -> dict[str, Any]:
    """``reason`` and ``files``: [{``rel``, ``state``: old, new, other or missing}] of the snapshot's paths.

    An unreadable snapshot or workspace is told in ``unreadable``; it is then not known which files.
    """
    paths = apply.workspace.paths
    manifest = paths.evolution.snapshot(apply.pk, apply.snapshot_attempt or 0) / "MANIFEST.json"
    try:
        files = [
            {"rel": str(file["rel"]), "state": _state(paths.halo, file)}
            for file in safe_json.loads(manifest.read_bytes())["files"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"reason": reason, "files": [], "unreadable": f"{manifest}: {error}"}
    return {"reason": reason, "files": files}


def _state(halo: Path, file: dict[str, Any]) -> str:
    try:
        live = look(halo, checked_relative(str(file["rel"])))
    except (OSError, UnsafePathError):
        return "other"
    if live is None:
        return "missing" if file.get("before") else "old"
    if live == file["after"]:
        return "new"
    return "old" if live == file.get("before") else "other"
