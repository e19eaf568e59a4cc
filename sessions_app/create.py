"""Making a session: its row, and the check of where it may work."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from django.db import transaction

from core import paths
from core.db.models import record_event
from core.db.text import storable
from core.ids import is_session_id, new_session_segment
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from workspaces.models import Workspace

EVENT_KIND = "session:changed"


def create_session(
    *,
    workspace: Workspace,
    agent_id: str,
    agent_name: str,
    access_level: str,
    working_dir: str = ".",
    kind: str = Session.Kind.CHAT,
    title: str = "",
    outside_data_at: datetime | None = None,
    session_id: str = "",
    now: datetime,
) -> Session:
    """Insert a root session. Raises SessionRefused for a working directory that can't be one."""
    identifier = session_id or new_session_segment()
    if not is_session_id(agent_id) or not is_session_id(identifier):
        raise SessionRefused(f"{agent_id!r} can't be the name of an agent's folder.", "bad_agent")
    with transaction.atomic():
        session = Session.objects.create(
            id=identifier,
            workspace=workspace,
            agent_id=agent_id,
            agent_name=agent_name,
            title=storable(title),
            working_dir=checked_working_dir(Path(workspace.path), working_dir),
            access_level=access_level,
            kind=kind,
            outside_data_at=outside_data_at,
            created_at=now,
            last_activity_at=now,
        )
        announce(session, change="created", now=now)
    return session


def announce(session: Session, *, change: str, now: datetime) -> None:
    """Write the event that views follow; call it inside the transaction of the change."""
    record_event(
        kind=EVENT_KIND,
        object_id=session.pk,
        workspace_id=session.workspace_id,
        payload={"change": change},
        now=now,
    )


def checked_working_dir(root: Path, text: str) -> str:
    """``text`` (relative to the workspace, or absolute inside it) as kept in the row: relative, existing."""
    try:
        relative = _inside(root, text)
        if relative == "." or (root / relative).is_dir():
            return relative
    except paths.UnsafePathError as error:
        raise SessionRefused(f"Working directory: {error}", "bad_working_dir") from error
    except (OSError, ValueError) as error:  # a name that no file system has
        raise SessionRefused(f"Working directory: {text[:100]!r} can't be one.", "bad_working_dir") from error
    raise SessionRefused(f"{text} is no folder in the workspace {root}.", "bad_working_dir")


def _inside(root: Path, text: str) -> str:
    candidate = Path(text)
    if candidate.is_absolute():
        resolved = candidate.resolve()
        if not resolved.is_relative_to(root.resolve()):
            raise SessionRefused(f"{text} lies outside the workspace {root}.", "bad_working_dir")
        text = resolved.relative_to(root.resolve()).as_posix()
    if text in ("", "."):
        return "."
    return paths.inside(root, text).relative_to(root.resolve()).as_posix()
