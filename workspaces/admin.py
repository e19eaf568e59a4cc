"""Workspaces to look at; ``halo workspace`` adds and moves them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse

from core.db.admin import ReadOnlyAdmin, age_column, note_since, since
from core.faults import Fault
from core.paths import halo_home
from workspaces.check import check_workspace
from workspaces.compose import list_agents, list_skills
from workspaces.models import Workspace
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, shared, surface_files


@admin.register(Workspace)
class WorkspaceAdmin(ReadOnlyAdmin):
    list_display = ("name", "folder", "path", "host", age_column("created_at", "Added"))
    search_fields = ("path",)
    ordering = ("path",)
    fields = ("name", "folder", "path", "host", "created_at")
    readonly_fields = fields

    @admin.display(description="Folder")
    def folder(self, workspace: Workspace) -> str:
        return "there" if _is_there(workspace) else "missing"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        note_since(request)
        workspace = self.get_object(request, unquote(object_id))
        found = _surface(workspace) if workspace is not None and self.has_view_permission(request) else {}
        given = {**(extra_context or {}), **since(request), **found}
        return super().change_view(request, object_id, form_url, given)


def _surface(workspace: Workspace) -> dict[str, Any]:
    """Agents, skills and what is wrong with them, as the next prompt would find them."""
    home = halo_home()
    faults: list[Fault] = check_workspace(workspace.paths, home=home)
    if not _is_there(workspace):
        return {"faults": faults}
    try:
        with shared(workspace.paths.evolution):
            surface = Surface(surface_files(workspace.paths.halo), home.global_folder)
            return {"faults": faults, "agents": list_agents(surface, []), "skills": list_skills(surface, [])}
    except (LockHeld, MarkerUnreadable, OSError):
        return {"faults": faults}  # which say the same


def _is_there(workspace: Workspace) -> bool:
    try:
        return workspace.paths.halo.is_dir()
    except OSError:
        return False
