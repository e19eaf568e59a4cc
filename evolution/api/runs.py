"""Runs: list, page, and the decisions on them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Status

from core.db.clock import database_now
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import responses
from core.ids import is_session_id
from core.paths import halo_home
from evolution import approve as approving
from evolution.admin.log import note, note_deleted
from evolution.api import schemas as shape
from evolution.api.rows import APPLIES, RUNS, Listed
from evolution.cancel import cancel_run
from evolution.claim import RunSeen
from evolution.console import as_json
from evolution.delete import delete, plan_delete
from evolution.enqueue import enqueue
from evolution.models import EvolutionRun
from evolution.reject import reject
from evolution.retry import retry
from evolution.run_view import view_run
from sessions_app.errors import SessionRefused
from sessions_app.models import Session

router = Router()
VIEW = guard("view", "workspaces.view")
REVIEW = guard("review", "workspaces.review")
ASK = guard("use_full_access", "workspaces.use_full_access")


@router.get("/runs", response=responses(ok=shape.RunListPage), summary="Runs, newest first", **VIEW)
def list_runs(request: HttpRequest, listed: Query[Listed], status: EvolutionRun.Status | None = None) -> Any:
    found = RUNS.rows()
    if status is not None:
        found = found.filter(status=status.value)
    return RUNS.page(found, listed)


@router.post(
    "/runs",
    response={**responses(ok=shape.RunOut, status=201), 200: shape.RunOut},
    summary="Ask for a run on a session; 200 when the same request waits already",
    **ASK,
)
def ask_for_run(request: HttpRequest, body: shape.EnqueueIn) -> Any:
    session = Session.objects.select_related("workspace").filter(pk=_session_id(body.session)).first()
    if session is None:
        raise SessionRefused("There is no such session.", "not_found")
    outcome = enqueue(
        session=session,
        hint=body.hint,
        requested_by=caller_of(request).user,
        trigger=EvolutionRun.Trigger.API,
        now=database_now(),
    )
    return Status(201 if outcome.created else 200, RUNS.show(RUNS.find(outcome.run_id)))


@router.get(
    "/runs/{run_id}",
    response=responses(ok=shape.RunPageOut),
    summary="A run with all a decision needs",
    **VIEW,
)
def show_run(request: HttpRequest, run_id: str) -> Any:
    return as_json.run_page(view_run(RUNS.find(run_id), home=halo_home()))


@router.post(
    "/approve",
    response=responses(ok=shape.ApplyOut),
    summary="Approve several runs of one workspace into one apply",
    **REVIEW,
)
def approve_several(request: HttpRequest, body: shape.ApproveSeveralIn) -> Any:
    chosen = [(RUNS.find(item.id), item) for item in body.runs]
    return _approved(request, [_seen(run, item) for run, item in chosen], body.hint)


@router.post(
    "/runs/{run_id}/approve",
    response=responses(ok=shape.ApplyOut),
    summary="Approve a run; the new apply",
    **REVIEW,
)
def approve_run(request: HttpRequest, run_id: str, body: shape.ApproveIn) -> Any:
    return _approved(request, [_seen(RUNS.find(run_id), body)], body.hint)


@router.post(
    "/runs/{run_id}/reject", response=responses(ok=shape.RunOut), summary="Turn a draft down", **REVIEW
)
def reject_run(request: HttpRequest, run_id: str, body: shape.RejectIn) -> Any:
    run = RUNS.find(run_id)
    reject(run=_seen(run, body), user=caller_of(request).user, reason=body.reason, now=database_now())
    return RUNS.noted(request, run, f"Rejected over REST: {body.reason.strip()}")


@router.post(
    "/runs/{run_id}/retry", response=responses(ok=shape.RunOut), summary="Start a run over", **REVIEW
)
def retry_run(request: HttpRequest, run_id: str, body: shape.RetryIn) -> Any:
    run = RUNS.find(run_id)
    retry(
        run_id=run.pk,
        attempt=body.attempt,
        hint=body.hint,
        user=caller_of(request).user,
        now=database_now(),
    )
    return RUNS.noted(request, run, "Started over, over REST.")


@router.post(
    "/runs/{run_id}/cancel",
    response=responses(ok=shape.RunOut),
    summary="Stop a pending or running run",
    **REVIEW,
)
def stop_run(request: HttpRequest, run_id: str) -> Any:
    run = RUNS.find(run_id)
    cancel_run(run_id=run.pk, user=caller_of(request).user, now=database_now())
    return RUNS.noted(request, run, "Cancelled over REST.")


@router.delete(
    "/runs/{run_id}",
    response=responses(ok=shape.DeletedOut),
    summary="Remove a run and what is only its own, for good",
    **REVIEW,
)
def delete_run(request: HttpRequest, run_id: str) -> Any:
    plan = plan_delete(RUNS.find(run_id).pk)
    delete(plan=plan, user=caller_of(request).user, now=database_now())
    gone = [*plan.names, *map(str, plan.paths)]
    note_deleted(
        user=caller_of(request).user, row_id=plan.run_id, text=f"Deleted over REST: {', '.join(gone)}"
    )
    return {"deleted": gone}


def _approved(request: HttpRequest, seen: list[RunSeen], hint: str) -> dict[str, Any]:
    caller = caller_of(request).user
    apply = approving.approve(runs=seen, user=caller, hint=hint, now=database_now())
    for run in apply.source_runs.all():
        note(user=caller, model=EvolutionRun, row_id=run.pk, text=f"Approved over REST into {apply}.")
    return APPLIES.show(APPLIES.find(apply.pk))


def _seen(run: EvolutionRun, body: shape.SeenIn) -> RunSeen:
    """As the caller was shown it; without ``apply``, with the ended apply the run has now."""
    apply_id = approving.seen_now(run).apply_id if body.apply is None else APPLIES.id_of(body.apply)
    return RunSeen(run.pk, body.attempt, apply_id)


def _session_id(text: str) -> str:
    return text if is_session_id(text) else ""
