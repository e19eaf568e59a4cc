"""``outside_data_at``: the mark of a session that was handed data of strangers. It spreads and is never cleared."""

from __future__ import annotations

from datetime import datetime

from sessions_app.models import Session


def carry(*, source_id: str, target_id: str, now: datetime) -> None:
    """Mark the target when the source is marked: it is handed what the source said. In the caller's transaction."""
    marked = Session.objects.filter(pk=source_id).exclude(outside_data_at=None)
    if marked.exists():
        Session.objects.filter(pk=target_id, outside_data_at=None).update(outside_data_at=now)


def title_for(session: Session, *, reader: Session) -> str:
    """What a listing tells one session of another: a title that may be a stranger's words isn't passed on."""
    if session.outside_data_at is not None and reader.outside_data_at is None:
        return "(holds data from outside)"
    return session.title or "(no message yet)"
