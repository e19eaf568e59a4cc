"""Reads for views and commands."""

from __future__ import annotations

from django.db.models import QuerySet

from core.db.text import storable
from sessions_app.errors import SessionRefused
from sessions_app.logs import Row
from sessions_app.logs.segments import archived_count, read_segment
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf, ui_log
from sessions_app.trees import SEPARATOR
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
    """The session with this id, or the only one whose id begins so. SessionRefused when none or several.

    The beginning of a root's id means the root, not what it started.
    """
    text = storable(text)
    rows = Session.objects.select_related("workspace")
    exact = rows.filter(pk=text).first()
    if exact is not None:
        return exact
    begin_so = rows.filter(pk__startswith=text)
    if SEPARATOR not in text:
        begin_so = begin_so.filter(parent=None)
    found = list(begin_so[:2]) if text else []
    if len(found) == 1:
        return found[0]
    if found:
        raise SessionRefused(f"Several sessions begin with {text}; give more of the id.", "ambiguous")
    raise SessionRefused(f"There is no session {text}; `halo session list` shows them.", "not_found")


def archived_rows(session: Session, number: int) -> list[Row]:
    """The rows of one segment, for a view that has come to the top of what it shows.

    The newest segment's number is the head's ``archived``; the one before it is a number lower. Raises
    SessionRefused (``not_found``) for a number that there isn't, OSError.
    """
    if not 1 <= number <= archived_count(ui_log(session)):
        raise SessionRefused(f"Session {session.pk} has no part {number}.", "not_found")
    return read_segment(log_folder(session), log_leaf(session), number).rows
