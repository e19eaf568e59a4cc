"""A person's view as a reader follows it: the ui log's records behind the last number that was seen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sessions_app.logs.lines import scan
from sessions_app.logs.records import Record
from sessions_app.logs.shapes import MAX_STEP


@dataclass(frozen=True, slots=True)
class Records:
    """``last``: where the next call goes on; ``more``: whether it would find something now.

    ``reload``: the log was written anew since the number that was seen; what the reader has is to be thrown
    away, and these are the log's first records.
    """

    records: list[Record]
    last: int
    more: bool
    reload: bool = False


def records_after(path: Path, *, after: int, limit: int) -> Records:
    """At most ``limit`` records with a higher ``seq``. Late writers' are left out; never writes."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Records([], 0, more=False, reload=after > 0)
    counted = list(_counted(scan(data).records))
    seq = counted[-1]["seq"] if counted else 0
    begins = counted[0]["seq"] if counted and counted[0]["t"] == "head" else 0
    reload = after > seq or 0 < after < begins
    start = 0 if reload else bisect_right(counted, after, key=lambda record: record["seq"])
    found = counted[start : start + limit]
    return Records(
        found,
        found[-1]["seq"] if found else seq,
        more=start + limit < len(counted),
        reload=reload,
    )


def _counted(records: Iterable[Record]) -> Iterator[Record]:
    """Those that a fold takes, in order: not a succeeded writer's, none that lost its place."""
    epoch = seq = 0
    for record in records:
        its_epoch, its_seq = record.get("e", 0), record.get("seq", 0)
        if record["t"] == "late" or its_epoch < epoch or not seq < its_seq <= seq + MAX_STEP:
            continue
        epoch, seq = its_epoch, its_seq
        yield record
