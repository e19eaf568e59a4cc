"""Slash commands that skills bring: ``command`` in a ``SKILL.md`` of the session's agent."""

from __future__ import annotations

import logging
from functools import partial

from core.faults import Fault
from core.paths import halo_home
from sessions_app.commands import Command, CommandContext, CommandResult
from sessions_app.levels import effective_level
from sessions_app.models import Session
from workspaces.compose import list_agents, list_skills
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, shared, surface_files
from workspaces.skill_md import SkillConfig, expand_arguments
from workspaces.surface_tools import refusal_of, verb_of

logger = logging.getLogger(__name__)


def of_session(session: Session) -> list[Command]:
    """The commands of the agent's skills, as the files are now; none while they can't be read."""
    paths = session.workspace.paths
    faults: list[Fault] = []
    try:
        with shared(paths.evolution):
            surface = Surface(surface_files(paths.halo), halo_home().global_folder)
            agent = next((each for each in list_agents(surface, faults) if each.id == session.agent_id), None)
            skills = list_skills(surface, faults)
    except (LockHeld, MarkerUnreadable, OSError) as error:
        logger.warning("Session %s: its skills can't be read: %s", session.pk, error)
        return []
    held = agent.skills if agent is not None else ()
    return [
        Command(skill.command, partial(run, skill), _usage(skill))
        for skill in skills
        if skill.command and skill.user_invocable and skill.id in held
    ]


def run(skill: SkillConfig, context: CommandContext) -> CommandResult:
    """The skill's body with its arguments, as a message; refused when the session's level is too low."""
    words = context.argument.split(maxsplit=1)
    verb = verb_of(skill, words[0]) if words else None
    reason = refusal_of(skill, verb, effective_level(context.session))
    if reason:
        return CommandResult(reason, ok=False)
    asked = f"/{skill.command} {context.argument}".rstrip()
    body = expand_arguments(skill.body, context.argument).strip()
    return CommandResult("", send=f"{asked}\n\n[The skill {skill.id}, from {skill.file}]\n\n{body}")


def _usage(skill: SkillConfig) -> str:
    verbs = "|".join(verb.name for verb in skill.verbs)
    return f"/{skill.command}{f' {verbs}' if verbs else ''}: {' '.join(skill.description.split())}"
