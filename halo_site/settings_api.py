"""REST: settings with their bounds and where each value comes from. A secret is never shown."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import ConfigDict, Field

from core.db.clock import database_now
from core.db.rest.auth import caller_of, guard
from core.db.rest.errors import ApiError, responses
from core.paths import halo_home
from core.settings_file import Settings
from core.settings_save import UNSET
from core.settings_schema import SCHEMA
from halo_site.change_settings import change_settings
from workspaces.models import Workspace

router = Router(tags=["settings"])
MAX_NUMBER = 2**63 - 1
CHANGE = guard("change_settings", "workspaces.change_settings")


class SettingOut(Schema):
    """``value`` of a secret says only whether it is set."""

    value: Any
    source: Literal["workspace", "global", "default"]
    kind: str
    wanted: str
    help: str
    secret: bool
    isGlobal: bool
    restart: bool


class SettingsOut(Schema):
    settings: dict[str, SettingOut]
    faults: list[dict[str, Any]]


class ChangesIn(Schema):
    """All or nothing: ``values`` are written, ``unset`` keys taken out, so that the next source counts."""

    model_config = ConfigDict(extra="forbid")

    values: dict[str, Any] = Field(default_factory=dict, max_length=500)
    unset: list[str] = Field(default_factory=list, max_length=500)
    workspace: int | None = Field(None, ge=1, le=MAX_NUMBER)


@router.get(
    "/settings",
    response=responses(ok=SettingsOut),
    summary="All settings; with `workspace`, as they are in force there",
    **CHANGE,
)
def read_settings(
    request: HttpRequest, workspace: int | None = Query(None, ge=1, le=MAX_NUMBER)
) -> dict[str, Any]:
    return _shown(_workspace(workspace))


@router.put(
    "/settings",
    response=responses(ok=SettingsOut),
    summary="Change settings: all that are named, or none",
    **CHANGE,
)
def put_settings(request: HttpRequest, body: ChangesIn) -> dict[str, Any]:
    workspace = _workspace(body.workspace)
    change_settings(
        user=caller_of(request).user,
        home=halo_home(),
        changes={**body.values, **dict.fromkeys(body.unset, UNSET)},
        workspace=workspace,
        now=database_now(),
    )
    return _shown(workspace)


def _workspace(workspace: int | None) -> Workspace | None:
    if workspace is None:
        return None
    row = Workspace.objects.filter(pk=workspace).first()
    if row is None:
        raise ApiError(404, "not_found", "There is no such workspace.")
    return row


def _shown(workspace: Workspace | None) -> dict[str, Any]:
    settings = Settings.load(halo_home(), None if workspace is None else workspace.paths)
    return {
        "settings": {
            key: {
                "value": settings.public(key),
                "source": settings.source(key),
                "kind": setting.kind,
                "wanted": setting.wanted,
                "help": setting.help,
                "secret": setting.secret,
                "isGlobal": setting.is_global,
                "restart": setting.restart,
            }
            for key, setting in SCHEMA.items()
        },
        "faults": [fault.to_json() for fault in settings.faults],
    }
