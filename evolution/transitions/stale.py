"""What the ticker writes on a row that nobody works any more, whichever kind it is."""

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
