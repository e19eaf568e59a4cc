"""What a person decided about a session, in the admin's own log: it outlives the session."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.apps import apps

from core.db.text import storable
from sessions_app.models import Session

Kind = Literal["added", "changed", "deleted"]


def note_started(session: Session, *, user: Any, now: datetime) -> None:
    text = f"Started with {session.agent_id} at access level {session.access_level}."
    note(session, text, user=user, kind="added", now=now)


def note(session: Session, text: str, *, user: Any, kind: Kind = "changed", now: datetime) -> None:
    """Call it in the transaction of the decision.

    ``user`` None, the person at this machine's terminal, has no name to write down; a process without the admin
    (``halo chat``) has no such log.
    """
    if user is None or not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
    from django.contrib.contenttypes.models import ContentType

    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Session),
        object_id=session.pk,
        object_repr=str(session)[:200],
        action_flag={"added": ADDITION, "changed": CHANGE, "deleted": DELETION}[kind],
        change_message=storable(text),
        action_time=now,
    )


def with_those_below(count: int) -> str:
    """Behind the verb, when ``count`` sessions of a tree are meant and not one."""
    return f" with {count - 1} below it" if count > 1 else ""
