"""Working with root sessions of any workspace of this installation: the verbs behind ``relay_tools``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from core.paths import HaloHome
from core.settings_file import Settings
from sessions_app import queue, reply_to, trees
from sessions_app.agent_choice import choose_agent
from sessions_app.create import create_session
from sessions_app.errors import SessionRefused
from sessions_app.levels import effective_level
from sessions_app.models import QueuedMessage, Session
from sessions_app.outside_data import carry, title_for
from sessions_app.relay_delivery import KIND
from sessions_app.tree_view import state_of
from workspaces.errors import WorkspaceRefused
from workspaces.models import Workspace
from workspaces.selectors import find as find_workspace

LISTED = 100


def send(
    *,
    caller_id: str,
    workspace: str,
    session_id: str,
    agent_id: str,
    message: str,
    home: HaloHome,
    now: datetime,
) -> tuple[Session, Sequence[str]]:
    """Queue a message in another root session, or in a new one, and have its outcome told to the caller.

    Returns the target, and the sessions to wake. Raises SessionRefused, and then nothing was changed.
    """
    caller = Session.objects.select_related("workspace").get(pk=caller_id)
    place = _workspace(workspace) if workspace else None
    with transaction.atomic():
        if session_id:
            target = find(caller_id=caller_id, session_id=session_id)
            if place is not None and target.workspace_id != place.pk:
                raise SessionRefused(f"Session {target.pk} is not in {place.path}.", "other_workspace")
        elif place is not None:
            target = _new(caller, place, agent_id, home, now)
        else:
            raise SessionRefused("Give a workspace, for a new session, or a session_id.", "no_target")
        told: Sequence[str] = ()
        if target.is_root:
            debt = {KIND: {"workspace": caller.workspace_id, "session": caller_id}}
            told = reply_to.take_over(target, debt, now=now)
        settings = Settings.load(home, target.workspace.paths)
        queue.accept(
            session=target,
            text=f"Relayed from workspace {caller.workspace.path}:\n\n{message}",
            sender=QueuedMessage.Sender.AGENT,
            source_session=caller_id,
            max_waiting=settings.get("general.session.max_queue_size"),
            now=now,
        )
    return target, (target.pk, *told)


def find(*, caller_id: str, session_id: str) -> Session:
    """A session that isn't the caller nor above it. Raises SessionRefused."""
    if session_id == caller_id or trees.is_below(caller_id, session_id):
        raise SessionRefused(
            "That is you, or a session that you work for: its outcome would be reported to itself.",
            "own_line",
        )
    row = None
    if "\0" not in session_id:
        row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None:
        raise SessionRefused(
            f"There is no session {session_id[:300]!r}; relay_list shows those there are.", "not_found"
        )
    return row


def listing(*, caller_id: str, workspace: str) -> list[tuple[Session, str, str]]:
    """The newest root sessions, of one workspace or of all, each with what it is doing and its title."""
    caller = Session.objects.get(pk=caller_id)
    rows = Session.objects.select_related("workspace").filter(parent=None, archived_at=None)
    if workspace:
        rows = rows.filter(workspace=_workspace(workspace))
    newest = list(rows.order_by("-last_activity_at", "pk")[:LISTED])
    return [(row, state_of(row), title_for(row, reader=caller)) for row in newest]


def output_of(*, caller_id: str, session_id: str, now: datetime) -> tuple[Session, str, str]:
    """The session, what it is doing, its last final text; the caller has then seen what that session had seen."""
    session = find(caller_id=caller_id, session_id=session_id)
    carry(source_id=session.pk, target_id=caller_id, now=now)
    return session, state_of(session), session.output


def _new(caller: Session, place: Workspace, agent_id: str, home: HaloHome, now: datetime) -> Session:
    agent = choose_agent(place, agent_id, home=home)
    if agent.internal or agent.broken:
        raise SessionRefused(f"The agent {agent.id} can't be used.", "unusable_agent")
    return create_session(
        workspace=place,
        agent_id=agent.id,
        agent_name=agent.name,
        access_level=effective_level(caller),
        outside_data_at=caller.outside_data_at,
        now=now,
    )


def _workspace(text: str) -> Workspace:
    try:
        return find_workspace(text)
    except WorkspaceRefused as error:
        raise SessionRefused(str(error), "unknown_workspace") from error
