"""Kept scenarios: list, one with its texts, and taking it out of use or back."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router

from core.db.clock import database_now
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import responses
from evolution.api import schemas as shape
from evolution.api.rows import SCENARIOS, Listed
from evolution.console import as_json
from evolution.retire import restore, retire

router = Router()
VIEW = guard("view", "workspaces.view")
REVIEW = guard("review", "workspaces.review")


@router.get(
    "/scenarios",
    response=responses(ok=shape.ScenarioListPage),
    summary="What landed runs showed to work, newest first",
    **VIEW,
)
def list_scenarios(
    request: HttpRequest, listed: Query[Listed], state: Literal["in_use", "retired", "all"] = "in_use"
) -> Any:
    found = SCENARIOS.rows()
    if state != "all":
        found = found.filter(retired_at__isnull=state == "in_use")
    return SCENARIOS.page(found, listed)


@router.get(
    "/scenarios/{scenario_id}",
    response=responses(ok=shape.ScenarioPageOut),
    summary="One, with its messages and answers",
    **VIEW,
)
def show_scenario(request: HttpRequest, scenario_id: str) -> Any:
    return as_json.scenario_page(SCENARIOS.find(scenario_id))


@router.post(
    "/scenarios/{scenario_id}/retire",
    response=responses(ok=shape.ScenarioOut),
    summary="Hold no apply to it any more",
    **REVIEW,
)
def retire_scenario(request: HttpRequest, scenario_id: str, body: shape.RetireIn) -> Any:
    row = SCENARIOS.find(scenario_id)
    retire(scenario_id=row.pk, user=caller_of(request).user, reason=body.reason, now=database_now())
    return SCENARIOS.noted(request, row, f"Retired over REST: {body.reason.strip()}")


@router.post(
    "/scenarios/{scenario_id}/restore",
    response=responses(ok=shape.ScenarioOut),
    summary="Put a retired one back into use",
    **REVIEW,
)
def restore_scenario(request: HttpRequest, scenario_id: str) -> Any:
    row = SCENARIOS.find(scenario_id)
    restore(scenario_id=row.pk, user=caller_of(request).user, now=database_now())
    return SCENARIOS.noted(request, row, "Put back into use over REST.")
