"""Kept scenarios: list, one with its texts, and taking it out of use or back."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router

from core.db.clock import database_now
from core.db.rest import pages
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import responses
from evolution.admin.log import note
from evolution.api import rows
from evolution.api import schemas as shape
from evolution.console import as_json
from evolution.models import RegressionScenario
from evolution.retire import restore, retire

router = Router()
VIEW = guard("view", "workspaces.view")
REVIEW = guard("review", "workspaces.review")
MAX_NUMBER = 2**63 - 1


@router.get(
    "/scenarios",
    response=responses(ok=shape.ScenarioListPage),
    summary="What landed runs showed to work, newest first",
    **VIEW,
)
def list_scenarios(
    request: HttpRequest,
    state: Literal["in_use", "retired", "all"] = "in_use",
    workspace: int | None = Query(None, ge=1, le=MAX_NUMBER),
    cursor: str = Query(""),
    limit: int = Query(pages.DEFAULT_LIMIT, ge=1, le=pages.MAX_LIMIT),
) -> Any:
    found = rows.scenarios()
    if state != "all":
        found = found.filter(retired_at__isnull=state == "in_use")
    return rows.page(found, workspace=workspace, cursor=cursor, limit=limit, show=as_json.scenario_row)


@router.get(
    "/scenarios/{scenario_id}",
    response=responses(ok=shape.ScenarioPageOut),
    summary="One, with its messages and answers",
    **VIEW,
)
def show_scenario(request: HttpRequest, scenario_id: str) -> Any:
    return as_json.scenario_page(rows.find_scenario(scenario_id))


@router.post(
    "/scenarios/{scenario_id}/retire",
    response=responses(ok=shape.ScenarioOut),
    summary="Hold no apply to it any more",
    **REVIEW,
)
def retire_scenario(request: HttpRequest, scenario_id: str, body: shape.RetireIn) -> Any:
    row = rows.find_scenario(scenario_id)
    retire(scenario_id=row.pk, user=caller_of(request).user, reason=body.reason, now=database_now())
    _note(request, row, f"Retired over REST: {body.reason.strip()}")
    return as_json.scenario_row(rows.find_scenario(scenario_id))


@router.post(
    "/scenarios/{scenario_id}/restore",
    response=responses(ok=shape.ScenarioOut),
    summary="Put a retired one back into use",
    **REVIEW,
)
def restore_scenario(request: HttpRequest, scenario_id: str) -> Any:
    row = rows.find_scenario(scenario_id)
    restore(scenario_id=row.pk, user=caller_of(request).user, now=database_now())
    _note(request, row, "Put back into use over REST.")
    return as_json.scenario_row(rows.find_scenario(scenario_id))


def _note(request: HttpRequest, row: RegressionScenario, text: str) -> None:
    note(user=caller_of(request).user, model=RegressionScenario, row_id=row.pk, text=text)
