"""Reads for views and commands."""

from __future__ import annotations

from django.db.models import QuerySet

from core.db.text import storable
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from workspaces.models import Workspace


def recent_sessions(
    *, workspace: Workspace | None = None, archived: bool = False, limit: int = 50
) -> QuerySet[Session]:
    """Root sessions, the last active first."""
    rows = Session.objects.select_related("workspace").filter(parent=None)
    if workspace is not None:
        rows = rows.filter(workspace=workspace)
    if not archived:
        rows = rows.filter(archived_at=None)
    return rows.order_by("-last_activity_at", "id")[:limit]


def find_session(text: str) -> Session:
    """The session with this id, or the only one whose id begins so. SessionRefused when none or several."""
    text = storable(text)
    rows = Session.objects.select_related("workspace")
    exact = rows.filter(pk=text).first()
    if exact is not None:
        return exact
    found = list(rows.filter(pk__startswith=text)[:2]) if text else []
    if len(found) == 1:
        return found[0]
    if found:
        raise SessionRefused(f"Several sessions begin with {text}; give more of the id.", "ambiguous")
    raise SessionRefused(f"There is no session {text}; `halo session list` shows them.", "not_found")
