"""Making a root session from a conversation recorded elsewhere, so that ``/evo`` can learn from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from core import clock, folders
from sessions_app import importers
from sessions_app.create import create_session
from sessions_app.importers import Imported
from sessions_app.importers.lock import conversion_lock
from sessions_app.logs import SessionLog
from sessions_app.logs import records as make
from sessions_app.models import Session
from workspaces.models import Workspace


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """``created`` is False when the very same file had been imported for this agent before."""

    session: Session
    created: bool
    messages: int
    exchanges: int
    left_out: Mapping[str, int]


def import_session(
    *, data: bytes, workspace: Workspace, agent_id: str, agent_name: str, format: str = "auto", now: datetime
) -> ImportOutcome:
    """Convert, write both logs, insert the row: in that order, so that nothing is half imported.

    The session carries ``outside_data_at`` and starts at ``workspace`` access: its text is a stranger's.
    Raises ImportFailed with the line, ImportLockHeld, OSError.
    """
    identity = f"{workspace.pk}\0{agent_id}\0".encode() + data
    session_id = f"import-{hashlib.sha256(identity).hexdigest()[:16]}"
    folder = workspace.paths.sessions / agent_id
    folders.make_below(workspace.paths.halo, folder)
    with conversion_lock(folder / f"{session_id}.importing"):
        known = Session.objects.filter(pk=session_id).first()
        imported = importers.parse(data, format=format)
        if known is not None:
            return _outcome(known, imported, created=False)
        _write(SessionLog(folder, session_id), imported, now=now)
        with transaction.atomic():
            session = create_session(
                workspace=workspace,
                agent_id=agent_id,
                agent_name=agent_name,
                access_level=Session.AccessLevel.WORKSPACE,
                title=imported.title,
                outside_data_at=now,
                session_id=session_id,
                now=now,
            )
            session.exchange_count = imported.exchanges
            session.save(update_fields=["exchange_count"])
    return _outcome(session, imported, created=True)


def _write(log: SessionLog, imported: Imported, *, now: datetime) -> None:
    """Both logs whole; those of an attempt that died before its row are replaced."""
    for file in (log.raw_file, log.ui_file):
        file.path.unlink(missing_ok=True)
    log.load()
    rows = [make.add(row) for row in imported.rows]
    if imported.left_out:
        text = "Left out by the import: " + ", ".join(
            f"{count} x {reason}" for reason, count in sorted(imported.left_out.items()) if count
        )
        note = make.system_row(row_id=make.new_row_id(), at=clock.stamp(now), kind="note", text=text)
        rows.append(make.add(note))
    log.append(
        raw=[
            make.message(message, shown)
            for message, shown in zip(imported.messages, imported.rows_of, strict=True)
        ],
        ui=rows,
        sync=True,
    )


def _outcome(session: Session, imported: Imported, *, created: bool) -> ImportOutcome:
    return ImportOutcome(
        session=session,
        created=created,
        messages=len(imported.messages),
        exchanges=imported.exchanges,
        left_out={reason: count for reason, count in imported.left_out.items() if count},
    )
