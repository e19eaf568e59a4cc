"""A person's view as a reader follows it: the ui log's records behind the last number that was seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sessions_app.logs.lines import scan
from sessions_app.logs.records import Record


@dataclass(frozen=True, slots=True)
class Records:
    """``last``: where the next call goes on; ``more``: whether it would find something now."""

    records: list[Record]
    last: int
    more: bool


def records_after(path: Path, *, after: int, limit: int) -> Records:
    """At most ``limit`` records with a higher ``seq``. Late writers' are left out; never writes."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Records([], after, more=False)
    epoch = seq = 0
    found: list[Record] = []
    for record in scan(data).records:
        its_epoch, its_seq = record.get("e", 0), record.get("seq")
        if not isinstance(its_seq, int) or its_epoch < epoch or its_seq <= seq:
            continue
        epoch, seq = its_epoch, its_seq
        if seq > after:
            if len(found) == limit:
                return Records(found, found[-1]["seq"], more=True)
            found.append(record)
    return Records(found, found[-1]["seq"] if found else after, more=False)
