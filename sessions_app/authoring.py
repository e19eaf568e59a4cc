"""Opening one session for authoring: for an hour its file tools may write the workspace's prompt files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from core.db.models import record_event
from core.texts import moment_words
from sessions_app.admin_log import note
from sessions_app.create import EVENT_KIND
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from workspaces.models import Workspace

AUTHOR = "workspaces.author"
LENGTH = timedelta(hours=1)
_READONLY = "A session at level readonly has no writing tools; raise its level first."


def is_open(session: Session, *, now: datetime) -> bool:
    until = session.authoring_until
    return until is not None and until > now and session.archived_at is None


def open_in(workspace_id: int, *, now: datetime) -> QuerySet[Session]:
    """The workspace's sessions that are open: one at most."""
    return Session.objects.filter(workspace_id=workspace_id, authoring_until__gt=now, archived_at=None)


def elsewhere(other: Session) -> str:
    """Why none can be opened while ``other`` is."""
    until = moment_words(other.authoring_until) if other.authoring_until is not None else ""
    return (
        f"Session {other.pk} of this workspace is open for authoring until {until}; close it there, on its page "
        "or with /session authoring off."
    )


def why_not(session: Session, *, now: datetime) -> str:
    """Why this root session can't be opened now, for a page; empty when it can. Opening checks it again."""
    if session.archived_at is not None:
        return f"Session {session.pk} is archived."
    if session.access_level == Session.AccessLevel.READONLY:
        return _READONLY
    other = open_in(session.workspace_id, now=now).exclude(pk=session.pk).first()
    return elsewhere(other) if other is not None else ""


def open_authoring(session: Session, *, user: Any, may: Callable[[str], bool], now: datetime) -> datetime:
    """Until when it is open. ``user`` None: the person at this machine's terminal.

    Raises SessionRefused (``forbidden``, ``no_root``, ``archived``, ``readonly``, ``authoring_elsewhere``),
    and then nothing was changed.
    """
    _check(session, may)
    if session.access_level == Session.AccessLevel.READONLY:
        raise SessionRefused(_READONLY, "readonly")
    until = now + LENGTH
    with transaction.atomic():
        # One opening of a workspace at a time: of two sessions that aren't open yet, neither sees the other.
        Workspace.objects.select_for_update(no_key=True).get(pk=session.workspace_id)
        other = open_in(session.workspace_id, now=now).exclude(pk=session.pk).first()
        if other is not None:
            raise SessionRefused(elsewhere(other), "authoring_elsewhere")
        if not Session.objects.filter(pk=session.pk, archived_at=None).update(authoring_until=until):
            raise SessionRefused(f"Session {session.pk} is archived.", "archived")
        _record(session, user, "authoring_opened", f"Opened for authoring until {moment_words(until)}.", now)
    session.authoring_until = until
    return until


def close_authoring(session: Session, *, user: Any, may: Callable[[str], bool], now: datetime) -> bool:
    """Close it before its hour is over; False when it wasn't open. Raises SessionRefused ``forbidden``."""
    _check(session, may)
    with transaction.atomic():
        open_one = Session.objects.filter(pk=session.pk, authoring_until__gt=now)
        if not open_one.update(authoring_until=now):
            return False
        _record(session, user, "authoring_closed", "Closed for authoring.", now)
    session.authoring_until = now
    return True


def _check(session: Session, may: Callable[[str], bool]) -> None:
    if not may(AUTHOR):
        raise SessionRefused(
            f"Writing prompt files from a session needs the permission {AUTHOR}; ask for a change with /evo.",
            "forbidden",
        )
    if not session.is_root:
        raise SessionRefused("Only a root session can be opened for authoring.", "no_root")


def _record(session: Session, user: Any, change: str, text: str, now: datetime) -> None:
    """The event that views follow, with who did it; in the web process the admin's log as well."""
    record_event(
        kind=EVENT_KIND,
        object_id=session.pk,
        workspace_id=session.workspace_id,
        payload={"change": change, "by": "" if user is None else user.get_username()},
        now=now,
    )
    note(session, text, user=user, now=now)
