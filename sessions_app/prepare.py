"""Everything one turn is handed, read from the disk as it is at this moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.tools.context import WebRules
from agents.turn import AccessLevel, ContextRules, Limits, ModelChoice, View
from agents.views import full_view, readonly_view, workspace_view
from core import clock
from core.paths import HaloHome, UnsafePathError, WorkspacePaths
from core.settings_file import Settings
from sessions_app.authoring import is_open
from sessions_app.create import checked_working_dir
from sessions_app.errors import SessionRefused
from sessions_app.levels import effective_level
from sessions_app.limits import context_rules_of, limits_of, web_rules_of
from sessions_app.models import Session
from workspaces.compose import SurfaceError, compose
from workspaces.model_choice import ModelUnavailableError, resolve_model
from workspaces.overrides import Surface
from workspaces.publish_lock import LockHeld, MarkerUnreadable, shared, surface_files
from workspaces.surface_tools import surface_tools

AUTHORING = (
    "\n\n<authoring>\nA person has opened this session for authoring: file_write and file_edit may change the "
    "prompt files in this workspace's .halo (INSTRUCTIONS.md, INDEX.md, USER.md, agents, skills, prompts, docs). "
    "Change them only as the person asks.\n</authoring>"
)


@dataclass(frozen=True, slots=True)
class Ingredients:
    system_prompt: str
    model: ModelChoice
    tools: tuple[str, ...]
    team: tuple[str, ...]
    access: AccessLevel
    view: View
    limits: Limits
    context: ContextRules
    secret_env: frozenset[str]
    web: WebRules
    surface_tools: tuple[Callable[..., Any], ...]


class CannotStart(Exception):
    """The turn can't start; the text is what the person in the session is told."""


def prepare(session: Session, *, home: HaloHome) -> Ingredients:
    """Compose the prompt, choose the model, lay out the view. Raises CannotStart."""
    paths = session.workspace.paths
    if not paths.root.is_dir():
        raise CannotStart(
            f"The workspace {paths.root} is gone. Put it back, or run: halo workspace move {paths.root} NEW_PATH"
        )
    settings = Settings.load(home, paths)
    access = effective_level(session)
    try:
        working_dir = checked_working_dir(paths.root, session.working_dir)
        with shared(paths.evolution):
            composed = compose(
                Surface(surface_files(paths.halo), home.global_folder),
                session.agent_id,
                workspace_root=paths.root,
                working_dir=working_dir,
                sub_session=not session.is_root,
            )
        model = resolve_model(composed.agent, settings)
    except (
        SurfaceError,
        ModelUnavailableError,
        UnsafePathError,
        SessionRefused,
        LockHeld,
        MarkerUnreadable,
        OSError,
    ) as error:
        raise CannotStart(str(error)) from error
    view = view_of(access, paths, home, settings, working_dir)
    system_prompt = composed.system_prompt
    until = session.authoring_until
    if until is not None and is_open(session, now=clock.now()):
        deadline = clock.suspended_seconds() + (until - clock.now()).total_seconds()
        view = replace(view, authoring=lambda: clock.suspended_seconds() < deadline)
        system_prompt += AUTHORING
    return Ingredients(
        system_prompt=system_prompt,
        model=model,
        tools=composed.agent.tools,
        team=composed.agent.team,
        access=access,
        view=view,
        limits=limits_of(settings),
        context=context_rules_of(settings, composed.agent),
        secret_env=settings.secret_variables(),
        web=web_rules_of(settings),
        surface_tools=tuple(surface_tools(composed, names=composed.agent.tools, access=access)),
    )


def view_of(
    access: AccessLevel, paths: WorkspacePaths, home: HaloHome, settings: Settings, working_dir: str
) -> View:
    folder = paths.root / working_dir
    if access == "full":
        return full_view(paths.root, global_folder=home.global_folder, working_dir=folder)
    extra = [Path(path) for path in settings.get("general.sandbox.allow")]
    make = workspace_view if access == "workspace" else readonly_view
    return make(paths.root, home.global_folder, extra, working_dir=folder)
