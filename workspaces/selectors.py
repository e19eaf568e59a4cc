"""Finding workspaces."""

from __future__ import annotations

from pathlib import Path

from core.paths import expanded
from workspaces.errors import WorkspaceRefused
from workspaces.models import Workspace


def find(text: str) -> Workspace:
    """The workspace with this number, at this path, or whose folder holds this path.

    Raises WorkspaceRefused.
    """
    if text.isascii() and text.isdigit():
        found = Workspace.objects.filter(pk=int(text[:18])).first()
        if found is not None:
            return found
    try:
        real = expanded(text).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkspaceRefused("unknown_workspace", f"{text[:200]!r} can't be a path: {error}") from error
    candidates = [str(folder) for folder in (real, *real.parents)]
    matches = {row.path: row for row in Workspace.objects.filter(path__in=candidates)}
    nearest = next((matches[path] for path in candidates if path in matches), None)
    if nearest is None and text.isascii() and text.isdigit():
        raise WorkspaceRefused(
            "unknown_workspace", f"There is no workspace {text[:20]}; `halo workspace list` shows them."
        )
    if nearest is None and not _is_folder(real):
        raise WorkspaceRefused(
            "unknown_workspace",
            f"There is no folder {real}, and no workspace holds it. A workspace is named by its path or its "
            "number; `halo workspace list` shows both.",
        )
    if nearest is None:
        raise WorkspaceRefused(
            "unknown_workspace", f"No workspace holds {real}. Add it with: halo workspace add {real}"
        )
    return nearest


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
