"""What a person may do with a row now, and why not where they may not. The verbs check all of it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User

from evolution.approve import awaits_decision, check_approvable, four_eyes_wanted
from evolution.delete import plan_delete
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun
from evolution.retry import check_retryable
from evolution.states import APPLY_MOVES, RUN_MOVES, ApplyStatus, RunStatus


@dataclass(frozen=True, slots=True)
class Button:
    """``why`` is empty while it can be used; ``key`` opens it."""

    name: str
    label: str
    key: str = ""
    why: str = ""


def run_buttons(run: EvolutionRun, user: User) -> list[Button]:
    """Those that ``user`` has the permission for, in the order they are shown."""
    buttons = []
    if user.has_perm("workspaces.review"):
        buttons += [
            Button("approve", "Approve", "a", _why(lambda: _approvable(run, user))),
            Button("reject", "Reject", "r", "" if awaits_decision(run) else _not_rejectable(run)),
            Button("retry", "Retry", "t", _why(lambda: check_retryable(run))),
            Button("cancel", "Cancel", "c", "" if _run_can(run, RunStatus.CANCELLED) else _NOT_CANCELLABLE),
            Button("delete", "Delete", "", _why(lambda: plan_delete(run.pk))),
        ]
        if run.current_apply is not None and run.current_apply.needs_person is not None:
            buttons.append(Button("try-again", "Try again"))
    if user.has_perm("workspaces.rollback"):
        apply = run.current_apply
        can = apply is not None and _apply_can(apply, ApplyStatus.ROLLING_BACK, ApplyStatus.APPLIED)
        buttons.append(Button("rollback", "Roll back", "b", "" if can else _NOT_APPLIED))
    return buttons


def apply_buttons(apply: EvolutionApply, user: User) -> list[Button]:
    buttons = []
    if user.has_perm("workspaces.review"):
        can_cancel = (apply.status, ApplyStatus.CANCELLED) in APPLY_MOVES
        waits = apply.needs_person is not None
        buttons += [
            Button("cancel", "Cancel", "c", "" if can_cancel else _TOO_LATE),
            Button("try-again", "Try again", "t", "" if waits else "It does not wait for a person."),
        ]
    if user.has_perm("workspaces.rollback"):
        can = _apply_can(apply, ApplyStatus.ROLLING_BACK, ApplyStatus.APPLIED)
        buttons.append(Button("rollback", "Roll back", "b", "" if can else _NOT_APPLIED))
    return buttons


_NOT_APPLIED = "Only an applied change can be rolled back."
_NOT_CANCELLABLE = "Only a pending or running run can be cancelled."
_TOO_LATE = "An apply can be cancelled before it starts to publish."


def _approvable(run: EvolutionRun, user: User) -> None:
    check_approvable(run, user=user, four_eyes=four_eyes_wanted())


def _not_rejectable(run: EvolutionRun) -> str:
    return f"{run} is {run.status}; only one that awaits review, or whose apply failed, can be rejected."


def _run_can(run: EvolutionRun, target: RunStatus) -> bool:
    return (run.status, target) in RUN_MOVES


def _apply_can(apply: EvolutionApply, target: ApplyStatus, source: ApplyStatus) -> bool:
    return apply.status == source and (apply.status, target) in APPLY_MOVES


def _why(check: Callable[[], object]) -> str:
    try:
        check()
    except Refused as refused:
        return str(refused)
    return ""
