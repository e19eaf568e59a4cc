"""A person ends the turn that runs: by a stop, or by an interrupt after which what waits is worked."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sessions_app.admin_log import note
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from sessions_app.worker import worker

Way = Literal["stop", "interrupt"]


def end_turn(session: Session, way: Way, *, user: Any, now: datetime) -> None:
    """Raises NotInServer, or SessionRefused ``not_working`` when nothing ran (nor waited, for a stop)."""
    end = worker().stop if way == "stop" else worker().interrupt
    if not end(session.pk):
        raise SessionRefused("Nothing runs in this session.", "not_working")
    note(session, "Stopped its turn." if way == "stop" else "Interrupted its turn.", user=user, now=now)
