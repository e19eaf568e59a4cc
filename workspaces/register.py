"""Making a folder a workspace."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from django.db import transaction

from core import atomic
from core.paths import HaloHome, UnsafePathError, WorkspacePaths, checked_workspace
from core.processes import host_name
from workspaces.errors import WorkspaceRefused
from workspaces.models import Workspace

GITIGNORE = "evo/\nsessions/\ntmp/\nmemory/\n"
MAX_PATH = 1024


def register(path: Path, *, home: HaloHome, now: datetime) -> tuple[Workspace, bool]:
    """The workspace at ``path`` and whether it is new; its ``.halo`` is made where it is missing.

    Raises WorkspaceRefused, and OSError when ``.halo`` can't be made.
    """
    real = usable_folder(path, home=home)
    with transaction.atomic():
        known = Workspace.objects.filter(path=str(real)).first()
        if known is None:
            refuse_overlap(real, except_id=None)
        prepare_folder(real)
        if known is not None:
            return known, False
        return Workspace.objects.create(path=str(real), host=host_name(), created_at=now), True


def usable_folder(path: Path, *, home: HaloHome) -> Path:
    """The real path of a folder that may be a workspace on this machine."""
    try:
        real = checked_workspace(path)
        str(real).encode()
    except UnicodeEncodeError as error:
        raise WorkspaceRefused("name_unusable", f"The name of {path!a} is not UTF-8; rename it.") from error
    except (UnsafePathError, OSError, RuntimeError, ValueError) as error:
        raise WorkspaceRefused("not_a_folder", str(error)) from error
    if len(str(real)) > MAX_PATH:
        raise WorkspaceRefused("name_unusable", f"The path is longer than {MAX_PATH} characters.")
    home_root = home.root.resolve()
    reserved = (home_root / "global", home_root / "secrets")
    if home_root.is_relative_to(real) or any(real.is_relative_to(folder) for folder in reserved):
        raise WorkspaceRefused(
            "overlaps_home",
            f"{real} holds or lies in Halo's own folder {home_root} (keys and machine-wide prompts); agents "
            "working there could reach it. Choose a folder beside it, or move HALO_HOME.",
        )
    return real


def refuse_overlap(real: Path, *, except_id: int | None) -> None:
    """A workspace inside another could be read and rewritten by the outer one's agents."""
    for identifier, text in Workspace.objects.values_list("id", "path"):
        other = Path(text)
        if identifier != except_id and (real.is_relative_to(other) or other.is_relative_to(real)):
            raise WorkspaceRefused(
                "nested",
                f"{real} and the workspace {other} lie in one another; agents of one would reach the other.",
            )


def prepare_folder(real: Path) -> None:
    """``.halo`` and its ``.gitignore``, where they are missing."""
    halo = WorkspacePaths(real).halo
    if halo.is_symlink() or (halo.exists() and not halo.is_dir()):
        raise WorkspaceRefused(
            "surface_not_a_folder", f"{halo} must be a folder of its own, not a link or a file."
        )
    halo.mkdir(exist_ok=True)
    gitignore = halo / ".gitignore"
    if not os.path.lexists(gitignore):
        atomic.write_text(gitignore, GITIGNORE)
