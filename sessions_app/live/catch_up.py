"""What a view missed: the rows that records behind its ``after`` are about, as they are now."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Literal

from sessions_app.live.items import Item, discard_item, row_item
from sessions_app.logs import Row
from sessions_app.logs.lines import scan
from sessions_app.logs.records import Record
from sessions_app.logs.ui_view import UiView, fold_ui

REPLAY_LIMIT = 1_000


class ReloadNeeded(Exception):
    """The view has to be made anew."""

    def __init__(self, reason: Literal["too_many", "rewritten", "too_old"]) -> None:
        super().__init__(reason)
        self.reason = reason


def missed(session_id: str, path: Path, *, after: int, up_to: int, html: bool) -> list[Item]:
    """In the order of the rows; one that is still growing is left out. Reads the whole log: off the loop.

    Raises ReloadNeeded.
    """
    if after == up_to:
        return []
    source = scan(path.read_bytes())
    if after > up_to or 0 < after < _begins(source.records):
        raise ReloadNeeded("rewritten")
    # The file may have grown since: what comes later is sent later.
    source.records = list(takewhile(lambda record: _seq(record) <= up_to, source.records))
    view = fold_ui(source)
    numbers = _numbers(source.records, after=after)
    gone = sorted(numbers.keys() - {row["id"] for row in view.rows}, key=lambda row_id: numbers[row_id])
    shown = [row for row in _finished(view) if after == 0 or row["id"] in numbers]
    if len(shown) + len(gone) > REPLAY_LIMIT:
        raise ReloadNeeded("too_many")
    items = [] if after == 0 else [discard_item(session_id, row_id, seq=numbers[row_id]) for row_id in gone]
    known = _known_behind(view.rows, new={row["id"] for row in shown})
    items += [
        row_item(session_id, row, seq=numbers.get(row["id"]), before=known[row["id"]], html=html)
        for row in shown
    ]
    return items


def row_now(path: Path, row_id: str) -> Row | None:
    """A row with everything that was set on it since."""
    view = fold_ui(scan(path.read_bytes()))
    return next((row for row in _finished(view) if row["id"] == row_id), None)


def row_id_of(record: Record) -> str:
    """Of the row that an ``add``, ``set``, ``drop`` or ``inflight`` is about; empty for any other record."""
    if record["t"] == "add":
        return str(record["row"]["id"])
    return str(record.get("id", "")) if record["t"] in ("set", "drop", "inflight") else ""


def _finished(view: UiView) -> Iterator[Row]:
    growing = set(view.open_rows)
    return (row for row in view.rows if row["id"] not in growing)


def _numbers(records: list[Record], *, after: int) -> dict[str, int]:
    """The last number of each row that was touched."""
    touched = [(row_id_of(record), _seq(record)) for record in records if _seq(record) > after]
    return {row_id: seq for row_id, seq in touched if row_id}


def _begins(records: list[Record]) -> int:
    """Where a log that was written anew begins; who has seen less has seen another one."""
    return _seq(records[0]) if records and records[0]["t"] == "head" else 0


def _seq(record: Record) -> int:
    seq = record.get("seq")
    return seq if isinstance(seq, int) else 0


def _known_behind(rows: list[Row], *, new: Collection[str]) -> dict[str, str | None]:
    """For each row the next one behind it that the view has already."""
    found: dict[str, str | None] = {}
    known: str | None = None
    for row in reversed(rows):
        found[row["id"]] = known
        if row["id"] not in new:
            known = row["id"]
    return found
