"""The system prompt of a session, and everything else that one turn takes from the prompt surface."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from core.faults import Fault
from workspaces.agent_yaml import AgentConfig, load_agent
from workspaces.overrides import Surface, Text
from workspaces.skill_md import SkillConfig, load_skill

PromptFile = Text
"""A file that went into the prompt: ``rel``, ``scope``, ``content``."""


class SurfaceError(Exception):
    """A turn can't start on this surface; the text is what the person in the session is told."""


class UnknownAgentError(SurfaceError):
    def __init__(self, agent_id: str, known: Iterable[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"There is no agent {agent_id[:64]!r}. Agents here: {names}.")


class BrokenAgentError(SurfaceError):
    """``faults`` says where; other agents go on working."""

    def __init__(self, agent: AgentConfig) -> None:
        self.faults = tuple(fault for fault in agent.faults if fault.severity == "fault")
        details = " ".join(map(str, self.faults))
        super().__init__(f"The agent {agent.id} can't be used until its file is mended. {details}")


@dataclass(frozen=True, slots=True)
class Composed:
    """``files`` in the order of the prompt. ``agents`` and ``skills`` list the whole surface, broken ones too.

    ``faults`` are those of the files read for this prompt and of every agent and skill listed.
    """

    system_prompt: str
    agent: AgentConfig
    files: tuple[PromptFile, ...]
    agents: tuple[AgentConfig, ...]
    skills: tuple[SkillConfig, ...]
    faults: tuple[Fault, ...]


def compose(
    surface: Surface,
    agent_id: str,
    *,
    workspace_root: Path,
    working_dir: str = ".",
    sub_session: bool = False,
) -> Composed:
    """Read the surface for one turn of ``agent_id``. ``workspace_root`` is the path the prompt names.

    Raises UnknownAgentError, BrokenAgentError, UnsafePathError (``working_dir`` outside the workspace).
    """
    faults: list[Fault] = []
    agents = list_agents(surface, faults)
    skills = list_skills(surface, faults)
    agent = next((agent for agent in agents if agent.id == agent_id), None)
    if agent is None:
        raise UnknownAgentError(agent_id, [agent.id for agent in agents if not agent.internal])
    if agent.broken:
        raise BrokenAgentError(agent)
    files: list[PromptFile] = []
    prompt = _Prompt(files)
    identity = _identity(surface, agent, faults)
    if agent.internal:
        prompt.add_identity(identity)
    else:
        _session_prompt(
            prompt, surface, agent, agents, skills, identity, faults, workspace_root, working_dir, sub_session
        )
    return Composed(
        "\n\n".join(prompt.sections), agent, tuple(files), tuple(agents), tuple(skills), tuple(faults)
    )


def list_agents(surface: Surface, faults: list[Fault]) -> list[AgentConfig]:
    """Every agent in order of id, broken ones marked; their faults are added to ``faults``."""
    agents = [load_agent(folder) for folder in surface.folders("agents", faults)]
    for agent in agents:
        faults.extend(agent.faults)
    return agents


def list_skills(surface: Surface, faults: list[Fault]) -> list[SkillConfig]:
    skills = [load_skill(folder) for folder in surface.folders("skills", faults)]
    for skill in skills:
        faults.extend(skill.faults)
    return skills


def _identity(surface: Surface, agent: AgentConfig, faults: list[Fault]) -> PromptFile:
    """``agent.yaml``'s ``system_prompt`` where there is no ``AGENT.md``."""
    folder = surface.folder("agents", agent.id)
    if folder is not None:
        found = next((text for text in surface.texts(folder, faults) if text.rel.endswith("/AGENT.md")), None)
        if found is not None:
            return found
    return PromptFile(f"agents/{agent.id}/agent.yaml", agent.scope, agent.system_prompt)


def _session_prompt(
    prompt: _Prompt,
    surface: Surface,
    agent: AgentConfig,
    agents: list[AgentConfig],
    skills: list[SkillConfig],
    identity: PromptFile,
    faults: list[Fault],
    workspace_root: Path,
    working_dir: str,
    sub_session: bool,
) -> None:
    """The order of surface.md, "The system prompt of a session"."""
    profile = surface.file("USER.md", faults)
    if not sub_session:
        if profile is None:
            prompt.add_scope(surface, "bootstrap", faults)
        else:
            prompt.add("user-profile", profile)
    prompt.add_identity(identity)
    prompt.add_text("team", _roster(agent, agents))
    if "activate_skill" in agent.tools:
        prompt.add_text("skills", _skill_list(agent, skills))
    for text in (surface.file("INSTRUCTIONS.md", faults), *surface.instructions_chain(working_dir, faults)):
        prompt.add("instructions", text)
    prompt.add("index", surface.own_file("INDEX.md", faults))
    prompt.add("project-knowledge", surface.agents_md(faults))
    place = f"Workspace: {workspace_root}\nWorking directory: {workspace_root / working_dir}"
    prompt.add_text("workspace", place)
    prompt.add_scope(surface, "all", faults)
    if not sub_session:
        prompt.add_scope(surface, "root", faults)


class _Prompt:
    """Sections in order. Each is fenced by a tag that names its file, but for the agent's own words."""

    def __init__(self, files: list[PromptFile]) -> None:
        self.sections: list[str] = []
        self._files = files

    def add_identity(self, text: PromptFile) -> None:
        self._files.append(text)
        if text.content.strip():
            self.sections.append(text.content.strip())

    def add(self, tag: str, text: PromptFile | None) -> None:
        if text is None:
            return
        self._files.append(text)
        if text.content.strip():
            self.sections.append(f'<{tag} file="{text.rel}">\n{text.content.strip()}\n</{tag}>')

    def add_text(self, tag: str, content: str) -> None:
        if content:
            self.sections.append(f"<{tag}>\n{content}\n</{tag}>")

    def add_scope(self, surface: Surface, scope: str, faults: list[Fault]) -> None:
        folder = surface.folder("prompts", scope)
        for text in surface.texts(folder, faults) if folder is not None else ():
            self.add("prompt", text)


def _roster(agent: AgentConfig, agents: list[AgentConfig]) -> str:
    """Those this agent may delegate to; empty when it delegates to nobody."""
    usable = {other.id: other for other in agents if not other.broken and not other.internal}
    team = [usable[name] for name in agent.team if name in usable and name != agent.id]
    return "\n".join(f"- {other.id}: {_one_line(other.description or other.name)}" for other in team)


def _skill_list(agent: AgentConfig, skills: list[SkillConfig]) -> str:
    offered = [
        skill
        for skill in skills
        if skill.id in agent.skills and not skill.broken and not skill.disable_model_invocation
    ]
    return "\n".join(f"- {skill.id}: {_one_line(skill.description)}" for skill in offered)


def _one_line(text: str) -> str:
    return " ".join(text.split())
