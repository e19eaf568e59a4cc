"""Mending a damaged log: what can't be read is kept aside, the rest is written anew with the gap named."""

from __future__ import annotations

import base64
import json
import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.history import is_summary
from core import atomic
from sessions_app.logs import records as make
from sessions_app.logs.lines import Damage, Scan
from sessions_app.logs.raw_view import RawView
from sessions_app.logs.records import Record
from sessions_app.logs.shapes import MAX_STEP
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


@dataclass(frozen=True, slots=True)
class WholeLog:
    """A ui log to be put in place of the old one; ``seq`` is its last number."""

    data: bytes
    seq: int


def repaired_ui(
    source: Scan,
    view: UiView,
    *,
    epoch: int,
    seen: int = 0,
    head: Record | None = None,
    further: Sequence[Record] = (),
) -> WholeLog:
    """The ui log below a head of its own, a system row where damage was; orphans and late writers' records go.

    Every record gets a number above all that this log ever had (``seen`` or found here), so that whoever
    followed it sees that it was written anew. ``further``: unnumbered records for its end, such as the note
    that keeps what goes.
    """
    orphans = {id(record) for record in view.orphans}
    pending = deque(source.damages)
    first = make.head(archived=view.archived, moved=view.moved, stamps=view.stamps)
    number = max(seen, last_seq(source))
    kept: list[Record] = []

    def keep(record: Record) -> None:
        nonlocal number
        number += 1
        kept.append({**record, "seq": number, "e": epoch})

    keep(head or first)
    highest = 0
    for index, record in enumerate(source.records):
        while pending and pending[0].before <= index:
            keep(make.add(damage_row(pending.popleft())))
        if id(record) in orphans or record["t"] == "head":
            continue
        if record["t"] != "late" and record.get("e", 0) >= highest and "seq" in record:
            highest = record.get("e", 0)
            keep(record)
    for record in [*(make.add(damage_row(damage)) for damage in pending), *further]:
        keep(record)
    return WholeLog(make.encode(kept), number)


def last_seq(source: Scan) -> int:
    """The highest number that a reader may have seen: each damaged line may have had one as well."""
    return sound_seq(source.records) + len(source.damages)


def sound_seq(records: Iterable[Record]) -> int:
    """The highest number among ``records``, those aside that are too far away to be of this log."""
    seq = 0
    for record in records:
        number = record.get("seq", 0)
        if seq < number <= seq + MAX_STEP:
            seq = number
    return seq


def repaired_raw(view: RawView, epoch: int) -> bytes:
    """The raw log renumbered without holes; a ``gap`` record stands where messages are lost."""
    lines: list[Record] = []
    for n, message in enumerate(view.messages):
        if n in view.gaps:
            lines.append({"t": "gap", "e": epoch, "n": n})
        covers = view.covers if n == 0 and is_summary(message) else ""
        lines.append({**make.message(message, view.rows[n], covers=covers), "e": epoch, "n": n})
    if len(view.messages) in view.gaps:
        lines.append({"t": "gap", "e": epoch, "n": len(view.messages)})
    return make.encode(lines)
