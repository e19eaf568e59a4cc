"""Which session ``halo chat`` talks to: the one named, the newest one, or a new one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction

from core.paths import HaloHome
from sessions_app.admin_log import note, note_started
from sessions_app.agent_choice import choose_agent
from sessions_app.create import announce, checked_working_dir, create_session
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from sessions_app.selectors import find_session
from workspaces.agent_yaml import AgentConfig
from workspaces.models import Workspace


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """``access`` and ``working_dir`` empty: ``full`` and the root for a new session, unchanged for an old one.

    ``new_id``: of the session that is started, if it isn't there yet.
    """

    workspace: Workspace
    agent_id: str = ""
    session_id: str = ""
    new: bool = False
    new_id: str = ""
    access: str = ""
    working_dir: str = ""
    user: Any = None


def chat_session(request: ChatRequest, *, home: HaloHome, now: datetime) -> tuple[Session, bool]:
    """The session and whether it is new. Raises SessionRefused, and then nothing was changed."""
    found = _existing(request, home)
    level = request.access or (found.access_level if found else Session.AccessLevel.FULL)
    check_user(request.user, level)
    if found is None:
        agent = choose_agent(request.workspace, request.agent_id, home=home)
        try:
            return _created(request, agent, level, now), True
        except IntegrityError:
            known = Session.objects.select_related("workspace").filter(pk=request.new_id).first()
            if known is None:
                raise
            return known, False
    _change(found, request, now)
    return found, False


def _change(session: Session, request: ChatRequest, now: datetime) -> None:
    """Directory and level as asked; views are told, and the admin's log of who set the level."""
    changes: dict[str, str] = {}
    if request.working_dir:
        changes["working_dir"] = checked_working_dir(Path(request.workspace.path), request.working_dir)
    if request.access:
        changes["access_level"] = request.access
    changes = {name: value for name, value in changes.items() if getattr(session, name) != value}
    if not changes:
        return
    for name, value in changes.items():
        setattr(session, name, value)
    with transaction.atomic():
        session.save(update_fields=list(changes))
        announce(session, change="set", now=now)
        if "access_level" in changes:
            note(session, f"Access level set to {request.access}.", user=request.user, now=now)


def _created(request: ChatRequest, agent: AgentConfig, level: str, now: datetime) -> Session:
    with transaction.atomic():
        session = create_session(
            workspace=request.workspace,
            agent_id=agent.id,
            agent_name=agent.name,
            access_level=level,
            working_dir=request.working_dir or ".",
            session_id=request.new_id,
            now=now,
        )
        note_started(session, user=request.user, now=now)
    return session


def _existing(request: ChatRequest, home: HaloHome) -> Session | None:
    if request.session_id:
        session = find_session(request.session_id)
        if session.workspace_id != request.workspace.pk:
            raise SessionRefused(
                f"Session {session.pk} belongs to {session.workspace.path}.", "other_workspace"
            )
        if session.archived_at is not None:
            raise SessionRefused(f"Session {session.pk} is archived; start a new one with -n.", "archived")
        if request.agent_id and request.agent_id != session.agent_id:
            raise SessionRefused(
                f"Session {session.pk} is with {session.agent_id}; leave out -a, or start a new one.",
                "other_agent",
            )
        return session
    if request.new:
        return None
    agent_id = choose_agent(request.workspace, request.agent_id, home=home).id
    rows = Session.objects.select_related("workspace").filter(
        workspace=request.workspace,
        agent_id=agent_id,
        parent=None,
        kind=Session.Kind.CHAT,
        archived_at=None,
        outside_data_at=None,
    )
    return rows.order_by("-last_activity_at").first()


def check_user(user: Any, level: str = "") -> None:
    """Whether a user named at the terminal may chat, at ``level``; who has no name may. Raises SessionRefused."""
    if user is None:
        return
    wanted = ["workspaces.chat"]
    if level == Session.AccessLevel.FULL:
        wanted.append("workspaces.use_full_access")
    for permission in wanted:
        if not user.has_perm(permission):
            raise SessionRefused(f"{user} lacks the permission {permission}.", "forbidden")
