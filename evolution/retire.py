"""A person takes a kept scenario out of use, or puts it back: applies are held to it, or no longer."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from evolution import permissions, transitions
from evolution.errors import Refused
from evolution.models import RegressionScenario
from evolution.words import check_length


def retire(*, scenario_id: str, user: User, reason: str, now: datetime) -> None:
    """Raises Refused ``forbidden``, ``reason_too_long``, ``not_found`` or ``already_retired``."""
    permissions.require(user, "review")
    check_length(reason, "reason")
    if not transitions.retire_scenario(
        scenario_id=scenario_id, user=user, reason=reason.strip() or "retired by hand", now=now
    ):
        row = _there(scenario_id)
        raise Refused(
            "already_retired", f"{row} is retired already: {row.retired_reason}.", scenario=scenario_id
        )


def restore(*, scenario_id: str, user: User, now: datetime) -> None:
    """Raises Refused ``forbidden``, ``not_found`` or ``not_retired``."""
    permissions.require(user, "review")
    if not transitions.restore_scenario(scenario_id=scenario_id, user=user, now=now):
        raise Refused("not_retired", f"{_there(scenario_id)} is in use already.", scenario=scenario_id)


def _there(scenario_id: str) -> RegressionScenario:
    row = RegressionScenario.objects.filter(pk=scenario_id).first()
    if row is None:
        raise Refused("not_found", f"There is no scenario-{scenario_id}; it went with the run that left it.")
    return row
