"""Following a workspace whose folder was renamed, and handing one to another host."""

from __future__ import annotations

from pathlib import Path

from django.db import IntegrityError, transaction

from core.paths import HaloHome, WorkspacePaths
from core.processes import host_name
from workspaces.errors import WorkspaceRefused
from workspaces.lock_file import disown
from workspaces.models import Workspace
from workspaces.register import refuse_overlap, usable_folder


def move(
    workspace: Workspace, *, home: HaloHome, new_path: Path | None = None, host: str | None = None
) -> Workspace:
    """Point the row at ``new_path``, at ``host``, or both. Returns the row as it is now.

    No file is touched but the publish lock: whoever moves a workspace to this host says that the one named in
    it is gone. The update is conditional on what the caller saw. Raises WorkspaceRefused; then nothing has changed.
    """
    values: dict[str, str] = {}
    if new_path is not None:
        values["path"] = _checked_target(workspace, new_path, home=home)
    if host is not None:
        values["host"] = host
    values = {name: value for name, value in values.items() if value != getattr(workspace, name)}
    to_here = host == host_name()
    if not values:
        if to_here and disown(workspace.paths.evolution):
            return workspace
        raise WorkspaceRefused("nothing_to_do", f"The workspace {workspace.path} is there already.")
    try:
        with transaction.atomic():
            if "path" in values:
                refuse_overlap(Path(values["path"]), except_id=workspace.pk)
            seen = Workspace.objects.filter(pk=workspace.pk, path=workspace.path, host=workspace.host)
            if not seen.update(**values):
                raise WorkspaceRefused("changed", "The workspace was changed meanwhile; look again.")
    except IntegrityError as error:
        raise WorkspaceRefused("taken", f"{values['path']} is a workspace already.") from error
    moved = Workspace.objects.get(pk=workspace.pk)
    if to_here:
        disown(moved.paths.evolution)
    return moved


def _checked_target(workspace: Workspace, new_path: Path, *, home: HaloHome) -> str:
    real = usable_folder(new_path, home=home)
    if not WorkspacePaths(real).halo.is_dir():
        raise WorkspaceRefused(
            "no_surface",
            f"{real} holds no .halo folder; move names the folder that was renamed, add makes a new one.",
        )
    old = Path(workspace.path)
    if old != real and workspace.paths.halo.is_dir() and not old.samefile(real):
        raise WorkspaceRefused(
            "still_there",
            f"{old} is still there. A copy is a workspace of its own: halo workspace add {real}",
        )
    return str(real)
