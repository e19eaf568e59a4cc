"""A person asks for an applied change to be taken back; a wrapper on the workspace's host does it.

(``evolution.rollback`` is the files' side of it.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from core.processes import host_name
from evolution import manifest as manifests
from evolution import permissions, rollback, ticker, transitions
from evolution.errors import Refused
from evolution.manifest import ManifestUnreadable
from evolution.models import EvolutionApply
from evolution.rollback_inspection import RollbackInspection
from evolution.spawn import spawn_wrapper
from evolution.states import APPLY_IN_FLIGHT, ApplyStatus

OUTCOME_WAIT_SEC = 5.0


@dataclass(frozen=True, slots=True)
class RollbackPreview:
    """What a rollback would meet. ``newer``: the later apply that changed a file in conflict, if one did."""

    apply: EvolutionApply
    inspection: RollbackInspection
    newer: str = ""

    @property
    def conflicts(self) -> list[dict[str, Any]]:
        """As shown to the person, who agrees to exactly this list when forcing."""
        return [file.to_json() for file in self.inspection.conflicts]


def preview(*, apply_id: str) -> RollbackPreview:
    """Raises Refused ``not_found``, ``not_applied``, ``apply_in_flight`` (details: ``apply``, ``status``)."""
    apply = EvolutionApply.objects.select_related("workspace").filter(pk=apply_id).first()
    if apply is None:
        raise Refused("not_found", f"There is no apply-{apply_id}; it may have been deleted.")
    if apply.status != ApplyStatus.APPLIED or apply.snapshot_attempt is None:
        raise Refused("not_applied", f"{apply} is {apply.status}; only an applied one can be rolled back.")
    _refuse_while_busy(apply)
    paths = apply.workspace.paths
    inspection = rollback.inspect(
        halo=paths.halo, snapshot_folder=paths.evolution.snapshot(apply.pk, apply.snapshot_attempt)
    )
    return RollbackPreview(apply, inspection, newer=_newer(apply, inspection))


def request_rollback(
    *,
    apply_id: str,
    attempts: int,
    user: User,
    force: bool = False,
    seen: Sequence[dict[str, Any]] = (),
    now: datetime,
) -> None:
    """Begin the rollback. ``seen`` is the conflict list the person was shown; it counts with ``force`` alone.

    Raises Refused as ``preview``, and ``forbidden``, ``no_snapshot``, ``backup_mismatch``, ``conflict``
    (details: ``conflicts``, ``newer``), ``changed``.
    """
    permissions.require(user, "rollback")
    found = preview(apply_id=apply_id)
    try:
        found.inspection.refuse(force=force, shown=seen)
    except Refused as refused:
        if not found.newer:
            raise
        text = f"{refused} {found.newer} landed later and changed the same; roll that back first."
        raise Refused(refused.code, text, **refused.details, newer=found.newer) from refused
    with ticker.ticker_lock():
        claim = transitions.begin_rollback(
            apply_id=apply_id, attempts=attempts, user=user, force=force, seen=list(seen), now=now
        )
    if found.apply.workspace.host == host_name():
        ticker.start(claim, ticker.order_for(claim), fresh=False, spawn=spawn_wrapper)


def await_outcome(
    *,
    apply_id: str,
    wait_sec: float = OUTCOME_WAIT_SEC,
    pause: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> dict[str, Any] | None:
    """What became of a rollback within ``wait_sec``; None: it is still at work.

    Raises Refused with the reason when the wrapper found, while planning, that it can't be done.
    """
    deadline = monotonic() + wait_sec
    while True:
        apply = EvolutionApply.objects.get(pk=apply_id)
        outcome: dict[str, Any] = apply.rollback_outcome or {}
        if apply.status == ApplyStatus.ROLLED_BACK:
            return outcome
        if apply.status == ApplyStatus.APPLIED:
            code = str(outcome.get("refused", "refused"))
            details = {key: value for key, value in outcome.items() if key != "refused"}
            raise Refused(code, f"{apply} stays applied; its wrapper found: {code}.", **details)
        if monotonic() >= deadline:
            return None
        pause(0.1)


def _refuse_while_busy(apply: EvolutionApply) -> None:
    busy = (
        EvolutionApply.objects.filter(workspace_id=apply.workspace_id, status__in=sorted(APPLY_IN_FLIGHT))
        .order_by("pk")
        .first()
    )
    if busy is not None:
        mend = (
            f", or cancel it: halo evo cancel {busy} --as USER" if busy.status == ApplyStatus.PENDING else "."
        )
        raise Refused(
            "apply_in_flight",
            f"{busy} of this workspace is {busy.status}; wait for its end{mend}",
            apply=str(busy),
            status=busy.status,
        )


def _newer(apply: EvolutionApply, inspection: RollbackInspection) -> str:
    in_conflict = {file.rel for file in inspection.conflicts}
    if not in_conflict:
        return ""
    later = EvolutionApply.objects.select_related("workspace").filter(
        workspace_id=apply.workspace_id, status=ApplyStatus.APPLIED, finished_at__gte=apply.finished_at
    )
    for other in later.exclude(pk=apply.pk).order_by("finished_at"):
        if other.snapshot_attempt is None:
            continue
        folder = other.workspace.paths.evolution.snapshot(other.pk, other.snapshot_attempt)
        try:
            published = {file.rel for file in manifests.read(folder).files}
        except ManifestUnreadable:
            continue
        if published & in_conflict:
            return str(other)
    return ""
