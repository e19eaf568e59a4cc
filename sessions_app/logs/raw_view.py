"""The model's view: records of the raw log folded into the list of messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.logs.lines import Damage, Scan, scan
from sessions_app.logs.records import Message, Record


@dataclass(slots=True)
class RawView:
    """``rows[i]``: the ui rows that show ``messages[i]``. ``gaps``: positions before which messages are lost.

    ``late``: records of a writer whose lease had been succeeded; they are named, never folded.
    ``orphans``: records that no longer have a place because the one they belong to is damaged. ``next_n``: the
    number that the log's next message must have at least; more than there are messages after a gap. ``covers``:
    the last ui row that the summary at the log's head stands for; empty when there is none, or it doesn't say.
    """

    messages: list[Message] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    late: list[Record] = field(default_factory=list)
    orphans: list[Record] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    epoch: int = 0
    next_n: int = 0
    covers: str = ""


def read_raw(path: Path) -> list[Message]:
    """The messages of ``<leaf>.raw.jsonl``; an absent file is an empty conversation. Never writes."""
    return read_raw_view(path).messages


def read_raw_view(path: Path) -> RawView:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return RawView()
    return fold_raw(scan(data))


def fold_raw(source: Scan) -> RawView:
    """Fold the records; the messages of the view are the records' own."""
    view = RawView(damages=list(source.damages))
    places: dict[int, int] = {}
    damaged_before = {damage.before for damage in source.damages}
    expected = 0
    for index, record in enumerate(source.records):
        if index in damaged_before:
            _mark_gap(view)
        epoch = record.get("e", 0)
        if epoch < view.epoch:
            view.late.append(record)
            continue
        view.epoch = epoch
        expected = _fold_record(view, record, places, expected)
    if len(source.records) in damaged_before:
        _mark_gap(view)
    view.next_n = expected
    return view


def _fold_record(view: RawView, record: Record, places: dict[int, int], expected: int) -> int:
    """The number that the next message must have at least. ``shapes`` has looked at the record's fields."""
    kind = record["t"]
    if kind == "msg" and record["n"] >= expected:
        n: int = record["n"]
        if n > expected:
            _mark_gap(view)
        places[n] = len(view.messages)
        view.messages.append(record["m"])
        view.rows.append(tuple(record.get("rows", ())))
        view.covers = record.get("covers", view.covers)
        return n + 1
    if kind == "part" and record["n"] in places:
        view.messages[places[record["n"]]]["parts"].append(record["p"])
    elif kind == "gap":
        _mark_gap(view)
    else:
        view.orphans.append(record)
    return expected


def _mark_gap(view: RawView) -> None:
    if not view.gaps or view.gaps[-1] != len(view.messages):
        view.gaps.append(len(view.messages))
