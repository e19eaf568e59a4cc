"""Applies: list, page, and the decisions on them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status

from core.db.clock import database_now
from core.db.rest import pages
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import responses
from evolution import request_rollback as rolling_back
from evolution.admin.log import note
from evolution.api import rows
from evolution.api import schemas as shape
from evolution.cancel import cancel_apply
from evolution.console import as_json
from evolution.models import EvolutionApply
from evolution.try_again import try_again

router = Router()
VIEW = guard("view", "workspaces.view")
REVIEW = guard("review", "workspaces.review")
ROLLBACK = guard("rollback", "workspaces.rollback")
MAX_NUMBER = 2**63 - 1


@router.get("/applies", response=responses(ok=shape.ApplyListPage), summary="Applies, newest first", **VIEW)
def list_applies(
    request: HttpRequest,
    status: EvolutionApply.Status | None = None,
    workspace: int | None = Query(None, ge=1, le=MAX_NUMBER),
    cursor: str = Query(""),
    limit: int = Query(pages.DEFAULT_LIMIT, ge=1, le=pages.MAX_LIMIT),
) -> Any:
    found = rows.applies()
    if status is not None:
        found = found.filter(status=status.value)
    return rows.page(found, workspace=workspace, cursor=cursor, limit=limit, show=as_json.apply_row)


@router.get("/applies/{apply_id}", response=responses(ok=shape.ApplyOut), summary="One apply", **VIEW)
def show_apply(request: HttpRequest, apply_id: str) -> Any:
    return as_json.apply_row(rows.find_apply(apply_id))


@router.post(
    "/applies/{apply_id}/cancel",
    response=responses(ok=shape.ApplyOut),
    summary="Stop an apply before it publishes",
    **REVIEW,
)
def stop_apply(request: HttpRequest, apply_id: str) -> Any:
    apply = rows.find_apply(apply_id)
    cancel_apply(apply_id=apply.pk, user=caller_of(request).user, now=database_now())
    _note(request, apply, "Cancelled over REST.")
    return as_json.apply_row(rows.find_apply(apply.pk))


@router.post(
    "/applies/{apply_id}/try-again",
    response=responses(ok=shape.ApplyOut),
    summary="Send on an apply that needed a person",
    **REVIEW,
)
def send_on(request: HttpRequest, apply_id: str) -> Any:
    apply = rows.find_apply(apply_id)
    try_again(apply_id=apply.pk, user=caller_of(request).user, now=database_now())
    _note(request, apply, "Sent on over REST.")
    return as_json.apply_row(rows.find_apply(apply.pk))


@router.get(
    "/applies/{apply_id}/rollback",
    response=responses(ok=shape.PreviewOut),
    summary="What a rollback would meet",
    **VIEW,
)
def preview_rollback(request: HttpRequest, apply_id: str) -> Any:
    found = rolling_back.preview(apply_id=rows.find_apply(apply_id).pk)
    return {
        "id": str(found.apply),
        "attempt": found.apply.attempts,
        "conflicts": found.conflicts,
        "newer": found.newer,
    }


@router.post(
    "/applies/{apply_id}/rollback",
    response=responses(ok=shape.ApplyOut, status=202),
    summary="Take an applied change back; follow the apply until it is rolled back",
    **ROLLBACK,
)
def roll_back(request: HttpRequest, apply_id: str, body: shape.RollbackIn) -> Any:
    apply = rows.find_apply(apply_id)
    rolling_back.request_rollback(
        apply_id=apply.pk,
        attempts=body.attempt,
        user=caller_of(request).user,
        force=body.force,
        seen=body.seen,
        now=database_now(),
    )
    _note(request, apply, f"Rollback asked for over REST{', forced' if body.force else ''}.")
    return Status(202, as_json.apply_row(rows.find_apply(apply.pk)))


def _note(request: HttpRequest, apply: EvolutionApply, text: str) -> None:
    note(user=caller_of(request).user, model=EvolutionApply, row_id=apply.pk, text=text)
