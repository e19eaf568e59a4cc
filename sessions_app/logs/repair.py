"""Mending a damaged log: what can't be read is kept aside, the rest is written anew with the gap named."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path

from core import atomic
from sessions_app.logs import records as make
from sessions_app.logs.lines import Damage, Scan
from sessions_app.logs.raw_view import RawView
from sessions_app.logs.records import Record
from sessions_app.logs.ui_view import UiView, damage_row


def keep_aside(
    path: Path, *, log: str, damages: Sequence[Damage], orphans: Sequence[Record], at: str
) -> None:
    """Append what is taken out of a log to ``<leaf>.damaged``, durably. One JSON document a line.

    Damaged bytes stand there in base64; a record that lost the one it belongs to stands there as it was.
    """
    entries: list[Record] = [
        {
            "log": log,
            "at": at,
            "offset": damage.offset,
            "why": damage.why,
            "bytes": base64.b64encode(damage.data).decode(),
        }
        for damage in damages
    ]
    entries += [{"log": log, "at": at, "why": "belongs to nothing", "record": orphan} for orphan in orphans]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        atomic.write_all(descriptor, "".join(json.dumps(entry) + "\n" for entry in entries).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    atomic.fsync_folder(path.parent)


def repaired_ui(source: Scan, view: UiView) -> bytes:
    """The ui log without damage and orphans; a ``gap`` record stands where damage was."""
    orphans = {id(record) for record in view.orphans}
    pending = list(source.damages)
    kept: list[Record] = []
    for index, record in enumerate(source.records):
        while pending and pending[0].before <= index:
            kept.append(_gap(pending.pop(0), view.epoch))
        if id(record) not in orphans:
            kept.append(record)
    kept += [_gap(damage, view.epoch) for damage in pending]
    return make.encode(kept)


def repaired_raw(view: RawView, epoch: int) -> bytes:
    """The raw log renumbered without holes; a ``gap`` record stands where messages are lost."""
    lines: list[Record] = []
    for n, message in enumerate(view.messages):
        if n in view.gaps:
            lines.append({"t": "gap", "e": epoch, "n": n})
        lines.append({**make.message(message, view.rows[n]), "e": epoch, "n": n})
    if len(view.messages) in view.gaps:
        lines.append({"t": "gap", "e": epoch, "n": len(view.messages)})
    return make.encode(lines)


def _gap(damage: Damage, epoch: int) -> Record:
    return {"t": "gap", "e": epoch, "row": damage_row(damage)}
