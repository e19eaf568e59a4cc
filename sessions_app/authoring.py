"""Opening one session for authoring: for an hour its file tools may write the workspace's prompt files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import transaction

from core import clock
from core.db.models import record_event
from sessions_app.create import EVENT_KIND
from sessions_app.errors import SessionRefused
from sessions_app.models import Session

AUTHOR = "workspaces.author"
LENGTH = timedelta(hours=1)


def is_open(session: Session, *, now: datetime) -> bool:
    return session.authoring_until is not None and session.authoring_until > now


def open_authoring(session: Session, *, user: Any, may: Callable[[str], bool], now: datetime) -> datetime:
    """Until when it is open. ``user`` None: the person at this machine's terminal.

    Raises SessionRefused (``forbidden``, ``no_root``, ``archived``, ``readonly``, ``authoring_elsewhere``),
    and then nothing was changed.
    """
    _check(session, may)
    if session.access_level == Session.AccessLevel.READONLY:
        raise SessionRefused(
            "A session at level readonly has no writing tools; raise its level first.", "readonly"
        )
    until = now + LENGTH
    with transaction.atomic():
        rows = Session.objects.select_for_update().filter(workspace_id=session.workspace_id)
        other = rows.filter(authoring_until__gt=now).exclude(pk=session.pk).first()
        if other is not None and other.authoring_until is not None:
            raise SessionRefused(
                f"Session {other.pk} of this workspace is open for authoring until "
                f"{clock.stamp(other.authoring_until)}; close it there with /session authoring off.",
                "authoring_elsewhere",
            )
        if not Session.objects.filter(pk=session.pk, archived_at=None).update(authoring_until=until):
            raise SessionRefused(f"Session {session.pk} is archived.", "archived")
        _record(session, user, "authoring_opened", f"Opened for authoring until {clock.stamp(until)}.", now)
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
    if user is None or not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import CHANGE, LogEntry
    from django.contrib.contenttypes.models import ContentType

    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Session),
        object_id=session.pk,
        object_repr=str(session)[:200],
        action_flag=CHANGE,
        change_message=text,
    )
