"""The live event of a changed setting. It holds no value: that may be a secret."""

from __future__ import annotations

from datetime import datetime

from core.db.models import record_event
from workspaces.models import Workspace

EVENT_KIND = "settings:changed"


def announce(key: str, *, by: int | None, unset: bool, workspace: Workspace | None, now: datetime) -> None:
    """Tell every view; ``by`` is a user's id, None for a person at this machine's terminal."""
    record_event(
        kind=EVENT_KIND,
        object_id=key,
        workspace_id=workspace.pk if workspace is not None else None,
        payload={"by": by, "unset": unset},
        now=now,
    )
