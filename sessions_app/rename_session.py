"""A session's title in a person's own words: from then on it stays, whatever is said."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from core.db.text import storable
from core.texts import is_one_line
from sessions_app.admin_log import note
from sessions_app.create import announce
from sessions_app.errors import SessionRefused
from sessions_app.models import Session

CHAT = "workspaces.chat"
MAX_CHARS = 200


def rename_session(session: Session, *, title: str, user: Any, now: datetime) -> str:
    """The title as it is kept. ``user`` None: the person at this machine's terminal.

    Raises SessionRefused (``forbidden``, ``bad_title``), and then nothing was changed.
    """
    if user is not None and not user.has_perm(CHAT):
        raise SessionRefused(f"You may not name a session: the permission {CHAT} is needed.", "forbidden")
    line = " ".join(title.split())
    if not 0 < len(line) <= MAX_CHARS or not is_one_line(line):
        raise SessionRefused(
            f"A title is one line of 1 to {MAX_CHARS} characters, without any that can't be seen.",
            "bad_title",
        )
    kept = storable(line)
    with transaction.atomic():
        Session.objects.filter(pk=session.pk).update(title=kept)
        session.title = kept
        announce(session, change="renamed", now=now)
        note(session, f"Named {kept}.", user=user, now=now)
    return kept
