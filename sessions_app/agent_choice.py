"""Which agent a new session talks to."""

from __future__ import annotations

from core.faults import Fault
from core.paths import HaloHome
from sessions_app.errors import SessionRefused
from workspaces.agent_yaml import AgentConfig
from workspaces.compose import list_agents
from workspaces.models import Workspace
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, shared, surface_files


def choose_agent(workspace: Workspace, agent_id: str = "", *, home: HaloHome) -> AgentConfig:
    """The agent named, or the usable one with the highest priority. Raises SessionRefused."""
    paths = workspace.paths
    faults: list[Fault] = []
    try:
        with shared(paths.evolution):
            agents = list_agents(Surface(surface_files(paths.halo), home.global_folder), faults)
    except (LockHeld, MarkerUnreadable, OSError) as error:
        raise SessionRefused(str(error), "surface_unreadable") from error
    if agent_id:
        found = next((agent for agent in agents if agent.id == agent_id), None)
        if found is None:
            names = ", ".join(agent.id for agent in agents if not agent.internal) or "none"
            raise SessionRefused(
                f"There is no agent {agent_id[:64]!r}. Agents here: {names}.", "unknown_agent"
            )
        return found
    usable = [agent for agent in agents if not agent.internal and not agent.broken]
    if not usable:
        raise SessionRefused(
            f"No agent can be used in {workspace.path}; `halo workspace check {workspace.pk}` says why.",
            "no_agent",
        )
    return min(usable, key=lambda agent: (-agent.priority, agent.scope != "workspace", agent.id))
