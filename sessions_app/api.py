"""REST: conversations, and their logs as a reader follows them. Reading writes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from ninja import Path, Query, Router, Schema

from core import clock
from core.db.rest import pages
from core.db.rest.auth import guard
from core.db.rest.errors import ApiError, responses
from core.ids import is_session_id
from sessions_app.errors import SessionRefused
from sessions_app.logs.records_after import records_after
from sessions_app.logs.shown import DEEPEST, shown
from sessions_app.models import Session
from sessions_app.places import ui_log
from sessions_app.selectors import archived_rows

router = Router(tags=["sessions"])
MAX_NUMBER = 2**63 - 1
MAX_RECORDS = 1_000
VIEW = guard("view", "workspaces.view")


class SessionOut(Schema):
    id: str
    workspace: int
    agent: str
    agentName: str
    title: str
    parent: str | None
    access: str
    kind: str
    exchanges: int
    contextTokens: int
    totalOutputTokens: int
    outsideData: bool
    createdAt: str
    lastActivityAt: str
    archived: bool


class SessionPage(Schema):
    items: list[SessionOut]
    next: str | None


class LogOut(Schema):
    """``records`` as they stand in the log (docs/sessions.md); ``last`` is the next call's ``after``.

    ``reload``: the log was written anew since; forget what came before, these are its first records.
    """

    records: list[Any]
    last: int
    more: bool
    reload: bool


class ArchiveOut(Schema):
    """``rows`` as a person's view shows them (docs/sessions.md), the oldest first."""

    number: int
    rows: list[Any]


@router.get(
    "/sessions", response=responses(ok=SessionPage), summary="Root sessions, the last active first", **VIEW
)
def list_sessions(
    request: HttpRequest,
    workspace: int | None = Query(None, ge=1, le=MAX_NUMBER),
    archived: bool = Query(False),
    cursor: str = Query(""),
    limit: int = Query(pages.DEFAULT_LIMIT, ge=1, le=pages.MAX_LIMIT),
) -> Any:
    rows = Session.objects.filter(parent=None)
    if workspace is not None:
        rows = rows.filter(workspace_id=workspace)
    if not archived:
        rows = rows.filter(archived_at=None)
    if cursor:
        moment, session_id = _place(cursor)
        rows = rows.filter(Q(last_activity_at__lt=moment) | Q(last_activity_at=moment, pk__gt=session_id))
    found = list(rows.order_by("-last_activity_at", "pk")[: limit + 1])
    return pages.page(
        found, limit=limit, show=described, key=lambda row: [row.last_activity_at.isoformat(), row.pk]
    )


@router.get("/sessions/{session_id}", response=responses(ok=SessionOut), summary="One session", **VIEW)
def show_session(request: HttpRequest, session_id: str) -> Any:
    return described(found_session(session_id))


@router.get(
    "/sessions/{session_id}/log",
    response=responses(ok=LogOut),
    summary="The log's records after the last one seen",
    **VIEW,
)
def read_log(
    request: HttpRequest,
    session_id: str,
    after: int = Query(0, ge=0, le=MAX_NUMBER),
    limit: int = Query(MAX_RECORDS, ge=1, le=MAX_RECORDS),
) -> Any:
    found = records_after(ui_log(found_session(session_id)), after=after, limit=limit)
    return {
        "records": shown(found.records, DEEPEST),
        "last": found.last,
        "more": found.more,
        "reload": found.reload,
    }


@router.get(
    "/sessions/{session_id}/archives/{number}",
    response=responses(ok=ArchiveOut),
    summary="Earlier rows, one part at a time; the log's head says how many parts there are",
    **VIEW,
)
def read_archive(request: HttpRequest, session_id: str, number: int = Path(ge=1, le=MAX_NUMBER)) -> Any:
    try:
        return {"number": number, "rows": shown(archived_rows(found_session(session_id), number), DEEPEST)}
    except SessionRefused as error:
        raise ApiError(404, error.code, str(error)) from error


def found_session(session_id: str) -> Session:
    """By the whole id: shortened ones are for people."""
    row = None
    if len(session_id) <= 300 and is_session_id(session_id):
        row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None:
        raise ApiError(404, "not_found", "There is no such session.")
    return row


def _place(cursor: str) -> tuple[datetime, str]:
    stamp, session_id = pages.decode(cursor, parts=2)
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC), session_id
    except (ValueError, OverflowError) as error:
        raise pages.bad_cursor() from error


def described(row: Session) -> dict[str, Any]:
    return {
        "id": row.pk,
        "workspace": row.workspace_id,
        "agent": row.agent_id,
        "agentName": row.agent_name,
        "title": row.title,
        "parent": row.parent_id,
        "access": row.access_level,
        "kind": row.kind,
        "exchanges": row.exchange_count,
        "contextTokens": row.context_tokens,
        "totalOutputTokens": row.total_output_tokens,
        "outsideData": row.outside_data_at is not None,
        "createdAt": clock.stamp(row.created_at),
        "lastActivityAt": clock.stamp(row.last_activity_at),
        "archived": row.archived_at is not None,
    }
