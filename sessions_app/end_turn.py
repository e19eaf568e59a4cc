"""A person ends the turn that runs: by a stop, or by an interrupt after which what waits is worked."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Literal

from sessions_app.admin_log import note
from sessions_app.errors import SessionRefused
from sessions_app.models import Session
from sessions_app.worker import worker

Way = Literal["stop", "interrupt"]


def end_turn(session: Session, way: Way, *, user: Any, now: datetime) -> None:
    """It stands in the admin's log from the moment the rows say it.

    Raises NotInServer, or SessionRefused ``not_working`` when nothing ran (nor waited, for a stop); then nothing
    was changed.
    """
    end = worker().stop if way == "stop" else worker().interrupt
    text = "Stopped its turn." if way == "stop" else "Interrupted its turn."
    if not end(session.pk, noted=partial(note, session, text, user=user, now=now)):
        raise SessionRefused("Nothing runs in this session.", "not_working")
