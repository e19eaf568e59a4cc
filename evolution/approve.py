"""A reviewer lets one or more drafts of a workspace through, into one apply."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User

from core.paths import halo_home
from core.settings_file import Settings
from evolution import permissions, ticker, transitions
from evolution.claim import RunSeen
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun
from evolution.states import APPLY_UNSUCCESSFUL, RunStatus
from evolution.words import check_length


def seen_now(run: EvolutionRun) -> RunSeen:
    """The run as whoever loaded this row was shown it."""
    approved = run.status == RunStatus.APPROVED
    return RunSeen(run.pk, run.attempts, run.current_apply_id if approved else None)


def approve(*, runs: Sequence[RunSeen], user: User, hint: str = "", now: datetime) -> EvolutionApply:
    """Approve all of ``runs`` or none; the new apply.

    Raises Refused ``forbidden``, ``nothing_chosen``, ``not_found``, ``several_workspaces``, ``four_eyes``,
    ``not_approvable`` (details: ``run``, ``status``), ``hint_too_long`` or ``changed``.
    """
    permissions.require(user, "review")
    check_length(hint, "hint")
    chosen = {seen.run_id: seen for seen in runs}
    if not chosen:
        raise Refused("nothing_chosen", "No run was named; give at least one.")
    rows = list(EvolutionRun.objects.select_related("current_apply").filter(pk__in=chosen).order_by("pk"))
    missing = sorted(set(chosen) - {run.pk for run in rows})
    if missing:
        raise Refused("not_found", f"There is no run-{missing[0]}; it may have been deleted.", run=missing[0])
    if len({run.workspace_id for run in rows}) > 1:
        raise Refused(
            "several_workspaces", "These runs belong to different workspaces; approve each workspace's alone."
        )
    four_eyes = four_eyes_wanted()
    for run in rows:
        _check(run, chosen[run.pk], user=user, four_eyes=four_eyes)
    apply_id = transitions.approve(
        runs=[chosen[run.pk] for run in rows],
        workspace_id=rows[0].workspace_id,
        user=user,
        hint=hint,
        now=now,
    )
    ticker.request_tick()
    return EvolutionApply.objects.select_related("workspace").get(pk=apply_id)


def four_eyes_wanted() -> bool:
    return bool(Settings.load(halo_home()).get("general.evolution.four_eyes"))


def _check(run: EvolutionRun, seen: RunSeen, *, user: User, four_eyes: bool) -> None:
    if run.attempts != seen.attempt:
        raise Refused("changed", f"{run} has changed since it was shown; look at it again.", run=run.pk)
    check_approvable(run, user=user, four_eyes=four_eyes)


def check_approvable(run: EvolutionRun, *, user: User, four_eyes: bool) -> None:
    """Whether ``user`` may approve ``run`` as it stands. Raises Refused ``not_approvable``, ``four_eyes``."""
    if not awaits_decision(run):
        raise Refused(
            "not_approvable",
            f"{run} is {run.status}; only a run that awaits review, or whose apply failed, can be approved.",
            run=run.pk,
            status=run.status,
        )
    if four_eyes and run.requested_by_id is None:
        raise Refused(
            "four_eyes",
            f"Nobody asked for {run} by name, and four_eyes wants two people; ask with `halo chat --as USER`.",
            run=run.pk,
        )
    if four_eyes and run.hint_by_id == user.pk:
        raise Refused(
            "four_eyes",
            f"You asked for {run} anew, with a hint of your own; with four_eyes someone else decides.",
            run=run.pk,
        )
    if four_eyes and run.requested_by_id == user.pk:
        raise Refused(
            "four_eyes", f"You asked for {run} yourself; with four_eyes someone else decides.", run=run.pk
        )


def awaits_decision(run: EvolutionRun) -> bool:
    """Whether a reviewer can approve or reject it: it awaits review, or its apply came to nothing."""
    if run.status == RunStatus.AWAITING_REVIEW:
        return True
    apply = run.current_apply
    return run.status == RunStatus.APPROVED and apply is not None and apply.status in APPLY_UNSUCCESSFUL
