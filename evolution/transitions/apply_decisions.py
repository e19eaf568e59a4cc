"""What people decide on applies; a rollback carries what the person saw.

The checks that need more than the row (permission, snapshot) are the verbs' own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from core.db.models import process_values
from evolution.claim import Claim
from evolution.errors import Refused
from evolution.models import EvolutionApply
from evolution.states import APPLY_IN_FLIGHT, ApplyStatus
from evolution.transitions._moves import (
    Person,
    changed_since,
    claimed_values,
    end_apply,
    move_row,
    released_values,
)
from evolution.transitions.applies import PLANNING


def cancel_apply(*, apply_id: str, user: Person, now: datetime) -> None:
    """Before its checkpoint only. Raises Refused ``not_cancellable``."""
    for source in (ApplyStatus.PENDING, ApplyStatus.RUNNING, ApplyStatus.PENDING):
        with transaction.atomic():
            if end_apply(
                EvolutionApply.objects.all(),
                apply_id=apply_id,
                source=source,
                target=ApplyStatus.CANCELLED,
                now=now,
                detail={"by": user.pk},
                values={"failure_reason": "cancelled", **process_values(None)},
            ):
                return
    raise Refused(
        "not_cancellable",
        "An apply can be cancelled before it starts to publish; afterwards it can be rolled back.",
    )


def begin_rollback(
    *,
    apply_id: str,
    attempts: int,
    user: Person,
    force: bool,
    seen: Sequence[Mapping[str, Any]],
    now: datetime,
) -> Claim:
    """Applied to rolling back, claimed for a wrapper; call it under the ticker's lock.

    ``seen`` is the conflict list the person was shown. Raises Refused ``not_applied``, ``apply_in_flight``
    (details: ``apply``, ``status``) or ``changed``.
    """
    apply = EvolutionApply.objects.filter(pk=apply_id).first()
    if apply is None or apply.status != ApplyStatus.APPLIED:
        raise Refused("not_applied", "Only an applied change can be rolled back.")
    busy = (
        EvolutionApply.objects.filter(workspace_id=apply.workspace_id, status__in=sorted(APPLY_IN_FLIGHT))
        .order_by("id")
        .first()
    )
    if busy is not None:
        raise Refused(
            "apply_in_flight",
            f"{busy} of this workspace is {busy.status}; wait for it"
            + (", or cancel it." if busy.status == ApplyStatus.PENDING else "."),
            apply=busy.pk,
            status=busy.status,
        )
    moved = move_row(
        EvolutionApply.objects.filter(attempts=attempts),
        row_id=apply_id,
        source=ApplyStatus.APPLIED,
        target=ApplyStatus.ROLLING_BACK,
        now=now,
        values={
            **claimed_values(now),
            "attempts_base": F("attempts"),
            "phase": PLANNING,
            "progress": {},
            "rolled_back_by_id": user.pk,
            "rollback_force": force,
            "rollback_seen": [dict(item) for item in seen],
            "rollback_outcome": None,
        },
        detail={"by": user.pk},
    )
    if not moved:
        raise changed_since("apply", apply_id)
    return Claim("apply", apply_id, ApplyStatus.ROLLING_BACK, attempts + 1)


def try_again(*, apply_id: str, user: Person, now: datetime) -> None:
    """An apply that needed a person goes on in its direction, with a fresh budget, when a slot is free.

    Raises Refused ``not_waiting``.
    """
    for source in (ApplyStatus.SYNCING, ApplyStatus.ROLLING_BACK):
        if move_row(
            EvolutionApply.objects.filter(needs_person__isnull=False),
            row_id=apply_id,
            source=source,
            target=source,
            now=now,
            values={"needs_person": None, "attempts_base": F("attempts"), **released_values()},
            detail={"by": user.pk},
        ):
            return
    raise Refused("not_waiting", "This apply does not wait for a person.")
