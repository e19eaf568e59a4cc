"""A person's view: records of the ui log folded into rows, each once, in the order in which they began."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.texts import counted
from sessions_app.logs.lines import Damage, Scan, scan
from sessions_app.logs.records import Record, Row, system_row
from sessions_app.logs.shapes import MAX_STEP


@dataclass(slots=True)
class UiView:
    """``seq``: that of the last record.

    ``open_rows``: ids that only ever were in flight (shown interrupted). ``late``: a succeeded writer's
    records; the next writer moves them into a note. ``archived``: how many segments hold earlier rows (``segments``);
    ``moved`` and ``stamps`` as in the log's head; ``archived_sets``: fields set on rows in the segments.
    """

    rows: list[Row] = field(default_factory=list)
    seq: int = 0
    epoch: int = 0
    open_rows: list[str] = field(default_factory=list)
    late: list[Record] = field(default_factory=list)
    orphans: list[Record] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    has_head: bool = False
    archived: int = 0
    moved: tuple[str, ...] = ()
    stamps: tuple[str, ...] = ()
    archived_sets: set[tuple[str, str]] = field(default_factory=set)


def read_ui(path: Path) -> UiView:
    """The view of ``<leaf>.ui.jsonl``, with a row for damage and late writers. Never writes."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return UiView()
    return fold_ui(scan(data))


def fold_ui(source: Scan, further: Sequence[Record] = (), late: Sequence[Record] = ()) -> UiView:
    """``further``: unnumbered records that a reader adds in memory because a writer would (``agreement``).

    ``late``: those of the raw log.
    """
    fold = _Fold()
    fold.view.late.extend(late)
    damages = deque(source.damages)
    for index, record in enumerate(source.records):
        while damages and damages[0].before == index:
            fold.place(damage_row(damages.popleft()))
        fold.take(record)
    for damage in damages:
        fold.place(damage_row(damage))
    for record in further:
        fold.take({"e": fold.view.epoch, "seq": fold.view.seq + 1, **record})
    return fold.finish(source.damages)


def damage_row(damage: Damage) -> Row:
    """The same id before and after the repair, so that a view shows the gap once."""
    return system_row(
        row_id=f"damage-{damage.offset}-{hashlib.sha256(damage.data).hexdigest()[:8]}",
        at="",
        kind="damage",
        text=f"Here {len(damage.data)} bytes of this conversation's log are damaged ({damage.why}). They are "
        "kept in the session's .damaged file; what they said is missing below.",
    )


def late_row(records: list[Record], *, row_id: str = "late", at: str = "") -> Row:
    return system_row(
        row_id=row_id,
        at=at,
        kind="late",
        text=f"{len(records)} records came from a process that no longer held this session. They are not "
        "part of the conversation; their text is kept with this note.",
        kept=records,
    )


def orphans_row(count: int, *, row_id: str = "orphans", at: str = "") -> Row:
    """``at`` is empty as long as they still stand in the log."""
    where = "They are kept" if at else "When somebody next writes here, they are kept"
    return system_row(
        row_id=row_id,
        at=at,
        kind="damage",
        text=f"Without a place in this conversation's log, and so not shown: {counted(count, 'record')}. {where} in "
        "the session's .damaged file.",
    )


class _Fold:
    def __init__(self) -> None:
        self.view = UiView()
        self.by_id: dict[str, Row] = {}
        self.open: dict[str, None] = {}
        self.before: dict[str, str] = {}

    def place(self, row: Row, before: object = None) -> None:
        """First appearance decides the place, the last content wins; ``before`` names another row's place."""
        if row["id"] not in self.by_id and isinstance(before, str):
            self.before[row["id"]] = before
        self.by_id[row["id"]] = row

    def take(self, record: Record) -> None:
        view = self.view
        epoch, seq = record.get("e", 0), record.get("seq")
        if record["t"] == "late":
            view.late.extend(record["records"])
            return
        if epoch < view.epoch or seq is None:
            view.late.append(record)
            return
        if not view.seq < seq <= view.seq + MAX_STEP or (view.seq and record["t"] == "head"):
            view.orphans.append(record)
            return
        view.epoch, view.seq = epoch, seq
        if not self._apply(record):
            view.orphans.append(record)

    def _apply(self, record: Record) -> bool:
        """Whether the record has a place. ``shapes`` has looked at its fields."""
        match record["t"]:
            case "add":
                row = record["row"]
                self.open.pop(row["id"], None)
                self.place(row, record.get("before"))
            case "inflight":
                return self._grow(record)
            case "set":
                return self._set(record["id"], record["field"], record.get("value"))
            case "drop":
                self.open.pop(record["id"], None)
                self.by_id.pop(record["id"], None)
            case "head":
                view = self.view
                view.has_head, view.archived = True, record["archived"]
                view.moved, view.stamps = tuple(record.get("moved", ())), tuple(record.get("stamps", ()))
            case _:
                return False
        return True

    def _grow(self, record: Record) -> bool:
        row_id = record["id"]
        if row_id in self.by_id and row_id not in self.open:
            return False
        self.open[row_id] = None
        began = {
            "id": row_id,
            "role": "assistant",
            "at": record.get("at", ""),
            "status": "interrupted",
            "blocks": [],
        }
        merge_blocks(self.by_id.setdefault(row_id, began)["blocks"], record["blocks"])
        return True

    def _set(self, row_id: str, name: str, value: object) -> bool:
        if row_id in self.by_id:
            self.by_id[row_id] = {**self.by_id[row_id], name: value}
        elif self.view.archived:
            self.view.archived_sets.add((row_id, name))
        else:
            return False
        return True

    def finish(self, damages: list[Damage]) -> UiView:
        view = self.view
        view.rows = self._ordered()
        view.open_rows = list(self.open)
        view.damages = list(damages)
        if view.orphans:
            view.rows.append(orphans_row(len(view.orphans)))
        if view.late:
            view.rows.append(late_row(view.late))
        return view

    def _ordered(self) -> list[Row]:
        """Rows with a ``before`` stand in front of their host, which may be such a row itself, or come later.

        Rows that name each other in a circle (no writer makes one) come last.
        """
        if not self.before:
            return list(self.by_id.values())
        guests: dict[str, list[str]] = {}
        for row_id, host in self.before.items():
            if row_id in self.by_id and host in self.by_id:
                guests.setdefault(host, []).append(row_id)
        moved = {row_id for rows in guests.values() for row_id in rows}
        waiting = [row_id for row_id in reversed(self.by_id) if row_id not in moved]
        ordered: list[Row] = []
        while waiting:
            row_id = waiting.pop()
            if row_id in guests:
                waiting += [row_id, *reversed(guests.pop(row_id))]
            else:
                ordered.append(self.by_id[row_id])
        placed = {row["id"] for row in ordered}
        return ordered + [row for row_id, row in self.by_id.items() if row_id not in placed]


def merge_blocks(blocks: list[dict[str, Any]], changed: dict[str, Any]) -> None:
    """``changed``: by their place as text; one behind the end is the next one."""
    for key in sorted(changed, key=int):
        index = int(key)
        if index < len(blocks):
            blocks[index] = changed[key]
        else:
            blocks.append(changed[key])
