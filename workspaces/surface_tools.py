"""The tools that show an agent its own surface: ``activate_skill``, ``list_agents``, ``query_agent``.

They answer from the surface that the turn's prompt was composed of, in an evaluation as in a session: a draft
of a skill is judged by what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agents.tools.context import ToolError
from agents.turn import AccessLevel
from workspaces.agent_yaml import AgentConfig
from workspaces.compose import Composed
from workspaces.skill_md import ACCESS_LEVELS, SkillConfig, Verb

NAMES = ("activate_skill", "list_agents", "query_agent")


def surface_tools(
    composed: Composed, *, names: Sequence[str], access: AccessLevel
) -> list[Callable[..., Any]]:
    """Those of the three that ``names`` (the agent's tools) lists."""
    made = [_activate_skill(composed, access), _list_agents(composed), _query_agent(composed)]
    return [tool for tool in made if tool.__name__ in names]


def is_allowed(needed: str | None, access: str) -> bool:
    """Whether a session at ``access`` reaches ``needed``; None is open to every session."""
    if needed is None:
        return True
    return access in ACCESS_LEVELS and ACCESS_LEVELS.index(access) <= ACCESS_LEVELS.index(needed)


def refusal_of(skill: SkillConfig, verb: Verb | None, access: str) -> str:
    """Why a session at ``access`` may not use the skill (this verb of it); empty when it may."""
    if skill.broken:
        faults = " ".join(str(fault) for fault in skill.faults if fault.severity == "fault")
        return f"The skill {skill.id} can't be used until its file is mended. {faults}"
    needed = verb.requires_access if verb is not None else skill.requires_access
    if is_allowed(needed, access):
        return ""
    what = f"{skill.id} {verb.name}" if verb is not None else skill.id
    return f"The skill {what} needs a session at level {needed}; this one has {access}."


def verb_of(skill: SkillConfig, name: str) -> Verb | None:
    return next((verb for verb in skill.verbs if verb.name == name), None)


def _activate_skill(composed: Composed, access: AccessLevel) -> Callable[..., Any]:
    offered = {skill.id: skill for skill in composed.skills if skill.id in composed.agent.skills}

    def activate_skill(name: str, verb: str = "") -> str:
        """Load a skill's instructions. Do so before a task that a listed skill is about, then follow them.

        Args:
            name: The skill's name as the system prompt lists it.
            verb: One of the skill's verbs, when the task is exactly that.
        """
        skill = offered.get(name)
        if skill is None or (skill.disable_model_invocation and not skill.broken):
            usable = [each.id for each in offered.values() if _is_shown(each)]
            raise ToolError(f"There is no skill {name[:64]!r} here. Skills: {', '.join(usable) or 'none'}.")
        chosen = verb_of(skill, verb) if verb else None
        if verb and chosen is None:
            known = ", ".join(each.name for each in skill.verbs) or "none"
            raise ToolError(f"The skill {skill.id} has no verb {verb[:64]!r}. Verbs: {known}.")
        if reason := refusal_of(skill, chosen, access):
            raise ToolError(reason)
        return _instructions(skill, chosen, access)

    return activate_skill


def _is_shown(skill: SkillConfig) -> bool:
    return not skill.broken and not skill.disable_model_invocation


def _instructions(skill: SkillConfig, verb: Verb | None, access: str) -> str:
    """The body, below what the reader must know about it: where its files lie and what isn't open here."""
    lines = [f"Skill {skill.id}, from {skill.file}; the files it names lie beside that one."]
    if verb is not None:
        lines.append(f"Do this: {verb.name}. {verb.description}".rstrip())
    closed = [each.name for each in skill.verbs if not is_allowed(each.requires_access, access)]
    if closed and verb is None:
        lines.append(f"Not open to this session (its level is {access}): {', '.join(closed)}.")
    return "\n".join(lines) + "\n\n" + skill.body


def _list_agents(composed: Composed) -> Callable[..., Any]:
    def list_agents() -> str:
        """List the agents of this workspace, and whether this agent may delegate to them."""
        lines = [
            f"- {agent.id}: {' '.join((agent.description or agent.name).split())}"
            + (" [in your team]" if agent.id in composed.agent.team else "")
            + (" [this agent]" if agent.id == composed.agent.id else "")
            for agent in _visible(composed)
        ]
        return "\n".join(lines)

    return list_agents


def _query_agent(composed: Composed) -> Callable[..., Any]:
    def query_agent(agent: str) -> str:
        """Tell what one agent of this workspace is for and what it has: tools, skills, team, model.

        Args:
            agent: The agent's id as list_agents gives it.
        """
        found = next((each for each in _visible(composed) if each.id == agent), None)
        if found is None:
            known = ", ".join(each.id for each in _visible(composed))
            raise ToolError(f"There is no agent {agent[:64]!r} here. Agents: {known}.")
        model = " ".join(filter(None, (found.model.provider or "offline", found.model.id)))
        may = "yes" if found.id in composed.agent.team else "no, it is not in your team"
        return "\n".join(
            [
                f"{found.id}: {found.name}",
                found.description or "(no description)",
                f"tools: {', '.join(found.tools) or 'none'}",
                f"skills: {', '.join(found.skills) or 'none'}",
                f"team: {', '.join(found.team) or 'none'}",
                f"model: {model}",
                f"you may delegate to it: {may}",
            ]
        )

    return query_agent


def _visible(composed: Composed) -> list[AgentConfig]:
    """Internal and broken agents aren't anybody's to talk to."""
    return [agent for agent in composed.agents if not agent.internal and not agent.broken]
