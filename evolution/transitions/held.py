"""What a wrapper writes on its row without changing the status; each write is conditional on its claim."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.db.models import process_values, record_event
from core.db.text import storable
from core.processes import ProcessIdentity
from evolution.claim import Claim
from evolution.transitions._moves import PROGRESS_EVENT, held


def write_process(claim: Claim, *, process: ProcessIdentity, now: datetime) -> None:
    """The wrapper's first write. Raises ClaimLost: a wrapper that came too late ends here."""
    written = claim.rows().update(heartbeat_at=now, **process_values(process))
    held(bool(written), row_id=claim.row_id)


def beat(claim: Claim, *, now: datetime) -> bool:
    """False: the claim is lost."""
    return bool(claim.rows().update(heartbeat_at=now))


def is_held(claim: Claim) -> bool:
    return claim.rows().exists()


def set_phase(claim: Claim, *, phase: str, now: datetime, done: int = 0, total: int = 0) -> None:
    """Show what the wrapper does. Raises ClaimLost."""
    with transaction.atomic():
        progress = {"done": done, "total": total} if total else {}
        held(bool(claim.rows().update(phase=phase, progress=progress)), row_id=claim.row_id)
        row = claim.rows().values("workspace_id").get()
        record_event(
            kind=PROGRESS_EVENT,
            object_id=claim.row_id,
            workspace_id=row["workspace_id"],
            payload={"kind": claim.kind, "phase": phase, "attempt": claim.attempt, **progress},
            now=now,
        )


def leave_reason(claim: Claim, *, reason: str) -> None:
    """Why this attempt gives up and leaves the row to the next tick (a held lock). Raises ClaimLost."""
    held(bool(claim.rows().update(failure_reason=storable(reason))), row_id=claim.row_id)
