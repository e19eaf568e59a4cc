"""Applies: list, page, and the decisions on them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status

from core.db.clock import database_now
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import responses
from evolution import request_rollback as rolling_back
from evolution.api import schemas as shape
from evolution.api.rows import APPLIES, Listed
from evolution.cancel import cancel_apply
from evolution.models import EvolutionApply
from evolution.try_again import try_again

router = Router()
VIEW = guard("view", "workspaces.view")
REVIEW = guard("review", "workspaces.review")
ROLLBACK = guard("rollback", "workspaces.rollback")


@router.get("/applies", response=responses(ok=shape.ApplyListPage), summary="Applies, newest first", **VIEW)
def list_applies(
    request: HttpRequest, listed: Query[Listed], status: EvolutionApply.Status | None = None
) -> Any:
    found = APPLIES.rows()
    if status is not None:
        found = found.filter(status=status.value)
    return APPLIES.page(found, listed)


@router.get("/applies/{apply_id}", response=responses(ok=shape.ApplyOut), summary="One apply", **VIEW)
def show_apply(request: HttpRequest, apply_id: str) -> Any:
    return APPLIES.show(APPLIES.find(apply_id))


@router.post(
    "/applies/{apply_id}/cancel",
    response=responses(ok=shape.ApplyOut),
    summary="Stop an apply before it publishes",
    **REVIEW,
)
def stop_apply(request: HttpRequest, apply_id: str) -> Any:
    apply = APPLIES.find(apply_id)
    cancel_apply(apply_id=apply.pk, user=caller_of(request).user, now=database_now())
    return APPLIES.noted(request, apply, "Cancelled over REST.")


@router.post(
    "/applies/{apply_id}/try-again",
    response=responses(ok=shape.ApplyOut),
    summary="Send on an apply that needed a person",
    **REVIEW,
)
def send_on(request: HttpRequest, apply_id: str) -> Any:
    apply = APPLIES.find(apply_id)
    try_again(apply_id=apply.pk, user=caller_of(request).user, now=database_now())
    return APPLIES.noted(request, apply, "Sent on over REST.")


@router.get(
    "/applies/{apply_id}/rollback",
    response=responses(ok=shape.PreviewOut),
    summary="What a rollback would meet",
    **VIEW,
)
def preview_rollback(request: HttpRequest, apply_id: str) -> Any:
    found = rolling_back.preview(apply_id=APPLIES.find(apply_id).pk)
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
    apply = APPLIES.find(apply_id)
    rolling_back.request_rollback(
        apply_id=apply.pk,
        attempts=body.attempt,
        user=caller_of(request).user,
        force=body.force,
        seen=body.seen,
        now=database_now(),
    )
    forced = ", forced" if body.force else ""
    return Status(202, APPLIES.noted(request, apply, f"Rollback asked for over REST{forced}."))
