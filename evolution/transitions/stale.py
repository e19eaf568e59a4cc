"""What the ticker writes on a row whose wrapper may not work any more, whichever kind it is."""

from __future__ import annotations

from datetime import datetime

from evolution.claim import Observed
from evolution.states import RunStatus
from evolution.transitions._moves import move_row, released_values


def requeue(observed: Observed, *, now: datetime) -> bool:
    """A run, or an apply before its checkpoint, with tries left; its last reason stays until the next claim."""
    return move_row(
        observed.rows(),
        row_id=observed.claim.row_id,
        source=RunStatus.RUNNING,
        target=RunStatus.PENDING,
        now=now,
        values=released_values(),
    )


def beat_at(observed: Observed, *, now: datetime) -> bool:
    """A last sign of life from the future counts as given now, which is no earlier than it really was.

    False: the wrapper has given another since.
    """
    return bool(observed.rows().update(heartbeat_at=now))
