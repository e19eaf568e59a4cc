"""Deleting a session for good: its rows, its logs, and those of its sub-sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from sessions_app import lease, reply_to, trees
from sessions_app.admin_log import note, with_those_below
from sessions_app.create import announce
from sessions_app.errors import SessionHeld, SessionRefused
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.stop_tree import mark_stopped


@dataclass(frozen=True, slots=True)
class WhatGoes:
    """``sessions``: the session and those below it, the deepest last. ``waiting``: messages not answered yet."""

    sessions: list[Session]
    files: list[Path]
    waiting: int


def what_goes(session: Session) -> WhatGoes:
    """What a deletion would take away. Raises SessionRefused for a sub-session."""
    _check_root(session)
    below = Session.objects.select_related("workspace").filter(trees.below(session.pk))
    tree = [session, *sorted(below, key=lambda row: row.pk.count(">"))]
    return WhatGoes(
        sessions=tree,
        files=[path for row in tree for path in _files(row)],
        waiting=sum(row.queue.filter(worked_at=None).count() for row in tree),
    )


def delete_session(*, session: Session, user: Any = None, now: datetime) -> WhatGoes:
    """Rows first, in one transaction with the event; then the files, so that a crash leaves files without rows.

    Runs and applies that were made from the session stay with what they froze. ``user``: the person, for the
    admin's log. Raises SessionRefused
    (``running``, ``not_root``), and then nothing was deleted; OSError when a file can't be removed.
    """
    _check_root(session)
    try:
        held = lease.acquire(session.pk)
    except SessionHeld as error:
        raise SessionRefused(
            "The session is at work. Stop it, or wait until it has ended.", "running"
        ) from error
    try:
        found = what_goes(session)  # under the lease: nothing is begun or archived in there any more
        with transaction.atomic():
            reply_to.hold(session.pk, besides=[row.pk for row in found.sessions])
            lease.confirm(held)
            mark_stopped(session.pk, why="it was deleted", now=now)  # whoever is owed its outcome is told
            announce(session, change="deleted", now=now)
            note(
                session,
                f"Deleted{with_those_below(len(found.sessions))}.",
                user=user,
                kind="deleted",
                now=now,
            )
            for row in reversed(found.sessions):
                Session.objects.filter(pk=row.pk).delete()
    except BaseException:
        lease.release(held)
        raise
    for path in found.files:
        path.unlink(missing_ok=True)
    return found


def _check_root(session: Session) -> None:
    if not session.is_root:
        raise SessionRefused(
            f"{session.pk} is a sub-session; it goes with its root session {session.root_id}.", "not_root"
        )


def _files(session: Session) -> list[Path]:
    folder, leaf = log_folder(session), log_leaf(session)
    names = (f"{leaf}.ui.jsonl", f"{leaf}.raw.jsonl", f"{leaf}.damaged")
    found = [folder / name for name in names if (folder / name).exists()]
    return found + sorted(folder.glob(f"{leaf}.arch.*.jsonl.gz"))
