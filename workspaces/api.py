"""REST: the workspaces."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema

from core import clock
from core.db.rest import pages
from core.db.rest.auth import guard
from core.db.rest.errors import responses
from workspaces.models import Workspace

router = Router(tags=["workspaces"])
MAX_ID = 2**63 - 1


class WorkspaceOut(Schema):
    id: int
    name: str
    path: str
    host: str
    createdAt: str


class WorkspacePage(Schema):
    items: list[WorkspaceOut]
    next: str | None


@router.get(
    "/workspaces",
    response=responses(ok=WorkspacePage),
    summary="Workspaces in the order they were added",
    **guard("view", "workspaces.view"),
)
def list_workspaces(
    request: HttpRequest,
    cursor: str = Query(""),
    limit: int = Query(pages.DEFAULT_LIMIT, ge=1, le=pages.MAX_LIMIT),
) -> Any:
    rows = Workspace.objects.order_by("pk")
    if cursor:
        rows = rows.filter(pk__gt=_number(pages.decode(cursor, parts=1)[0]))
    return pages.page(list(rows[: limit + 1]), limit=limit, show=_described, key=lambda row: [str(row.pk)])


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 19 or int(text) > MAX_ID:
        raise pages.bad_cursor()
    return int(text)


def _described(row: Workspace) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "path": row.path,
        "host": row.host,
        "createdAt": clock.stamp(row.created_at),
    }
