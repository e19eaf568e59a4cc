"""What is wrong in one workspace's files, without starting anything."""

from __future__ import annotations

from core.faults import Fault
from core.paths import HaloHome, WorkspacePaths
from core.settings_file import Settings
from workspaces.agent_yaml import AgentConfig
from workspaces.compose import list_agents, list_skills
from workspaces.model_choice import ModelUnavailableError, resolve_model
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, shared, surface_files


def check_workspace(paths: WorkspacePaths, *, home: HaloHome) -> list[Fault]:
    """Faults of settings, agents, skills and prompt files, and models that can't be called. Never raises."""
    if not paths.root.is_dir():
        wanted = "the folder (renamed? halo workspace move OLD NEW)"
        return [Fault(str(paths.root), None, "", "no such folder", wanted)]
    if not paths.halo.is_dir():
        return [Fault(str(paths.halo), None, "", "no such folder", f"it (halo workspace add {paths.root})")]
    settings = Settings.load(home, paths)
    faults = [fault for fault in settings.faults if fault.file == str(paths.settings_file)]
    try:
        with shared(paths.evolution):
            surface = Surface(surface_files(paths.halo), home.global_folder)
            faults += _surface_faults(surface, settings)
    except (LockHeld, MarkerUnreadable, OSError) as error:
        faults.append(Fault(str(paths.halo), None, "", str(error), "a surface that can be read"))
    return faults


def check_machine(home: HaloHome) -> list[Fault]:
    """The same for what every workspace shares: the machine's settings, agents and skills."""
    settings = Settings.load(home)
    return [*settings.faults, *_surface_faults(Surface(None, home.global_folder), settings)]


def _surface_faults(surface: Surface, settings: Settings) -> list[Fault]:
    faults: list[Fault] = []
    agents = list_agents(surface, faults)
    skills = list_skills(surface, faults)
    for name in ("INSTRUCTIONS.md", "USER.md"):
        surface.file(name, faults)
    for scope in ("bootstrap", "all", "root"):
        folder = surface.folder("prompts", scope)
        if folder is not None:
            surface.texts(folder, faults)
    surface.own_file("INDEX.md", faults)
    surface.agents_md(faults)
    usable = {agent.id for agent in agents}
    known_skills = {skill.id for skill in skills}
    for agent in agents:
        if not agent.broken:
            faults += _dangling(agent, usable, known_skills)
            faults += _model(agent, settings)
    return faults


def _dangling(agent: AgentConfig, agents: set[str], skills: set[str]) -> list[Fault]:
    """Names in ``team`` and ``skills`` that nothing answers to; they are ignored, so a warning."""
    named = (("team", agent.team, agents), ("skills", agent.skills, skills))
    return [
        Fault(
            agent.file, None, key, name[:64], f"one of {', '.join(sorted(known)) or 'none here'}", "warning"
        )
        for key, names, known in named
        for name in names
        if name not in known
    ]


def _model(agent: AgentConfig, settings: Settings) -> list[Fault]:
    try:
        resolve_model(agent, settings)
    except ModelUnavailableError as error:
        return [Fault(agent.file, None, "model", str(error).rstrip("."), "a model that can be called")]
    return []
