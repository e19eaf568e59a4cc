"""Two texts side by side, line for line, unchanged stretches left out. No Django."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from evolution.line_diff import groups
from evolution.live_diff import both_lines

MAX_ROWS = 3_000
"""A browser has to lay all of them out."""

Kind = Literal["same", "change", "add", "remove", "gap"]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """``gap`` stands for ``skipped`` unchanged lines; numbers are None where a side has no line."""

    kind: Kind
    old_number: int | None = None
    old: str = ""
    new_number: int | None = None
    new: str = ""
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class SideBySide:
    """``added`` and ``removed`` count all lines, also those beyond ``MAX_ROWS``."""

    rows: tuple[DiffRow, ...]
    added: int
    removed: int
    cut: int


def side_by_side(before: bytes | None, after: bytes | None) -> SideBySide:
    old, new = both_lines(before, after)
    rows = list(_rows(old, new))
    return SideBySide(
        rows=tuple(rows[:MAX_ROWS]),
        added=sum(row.kind in ("add", "change") for row in rows),
        removed=sum(row.kind in ("remove", "change") for row in rows),
        cut=max(0, len(rows) - MAX_ROWS),
    )


def _rows(old: list[str], new: list[str]) -> Iterator[DiffRow]:
    shown_to = 0
    for group in groups(old, new):
        if skipped := group[0][1] - shown_to:
            yield DiffRow("gap", skipped=skipped)
        for _, old_from, old_to, new_from, new_to in group:
            for left, right in zip_longest(range(old_from, old_to), range(new_from, new_to)):
                yield _row(left, right, old, new)
        shown_to = group[-1][2]
    if shown_to and (skipped := len(old) - shown_to):
        yield DiffRow("gap", skipped=skipped)


def _row(left: int | None, right: int | None, old: list[str], new: list[str]) -> DiffRow:
    if left is None and right is not None:
        return DiffRow("add", new_number=right + 1, new=new[right])
    if right is None and left is not None:
        return DiffRow("remove", old_number=left + 1, old=old[left])
    if left is None or right is None:
        raise ValueError("a row of a diff has at least one side")
    kind: Kind = "same" if old[left] == new[right] else "change"
    return DiffRow(kind, left + 1, old[left], right + 1, new[right])
