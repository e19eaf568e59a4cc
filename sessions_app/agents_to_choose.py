"""What a person chooses from for a new session: the workspaces' usable agents."""

from __future__ import annotations

from dataclasses import dataclass

from core.paths import HaloHome
from workspaces.agent_yaml import AgentConfig
from workspaces.compose import list_agents
from workspaces.models import Workspace
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, shared, surface_files

MAX_PLACES = 200


@dataclass(frozen=True, slots=True)
class Place:
    """``why_none``: what keeps its agents from being read."""

    workspace: Workspace
    agents: tuple[AgentConfig, ...] = ()
    why_none: str = ""


def agents_to_choose(*, home: HaloHome) -> list[Place]:
    return [_place(workspace, home) for workspace in Workspace.objects.order_by("path")[:MAX_PLACES]]


def _place(workspace: Workspace, home: HaloHome) -> Place:
    paths = workspace.paths
    try:
        if not paths.halo.is_dir():
            return Place(workspace, why_none="its folder is missing")
        with shared(paths.evolution):
            found = list_agents(Surface(surface_files(paths.halo), home.global_folder), [])
    except (LockHeld, MarkerUnreadable, OSError) as error:
        return Place(workspace, why_none=str(error))
    usable = [agent for agent in found if not agent.internal and not agent.broken]
    usable.sort(key=lambda agent: (-agent.priority, agent.scope != "workspace", agent.id))
    return Place(workspace, tuple(usable), "" if usable else "no agent there can be used")
