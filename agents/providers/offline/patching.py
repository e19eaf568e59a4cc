"""Carries the lines that one file gained and lost over to another version of the same file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from agents.providers.offline import files


class Conflict(Exception):
    """Says which line can't be carried over, and why."""


def carried(old: str, new: str, live: str) -> str:
    """``live`` with the changes from ``old`` to ``new``. Removed lines must be there."""
    before, after = files.lines_of(old.rstrip()), files.lines_of(new.rstrip())
    lines = files.lines_of(live.rstrip())
    for tag, start, end, from_new, to_new in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        gone, come = before[start:end], after[from_new:to_new]
        if come and _holds(lines, come) and not (gone and _holds(lines, gone)):
            continue
        if gone:
            place = _find(lines, gone)
            if place is None:
                raise Conflict(f"the text it changes is gone: “{gone[0].strip()}”")
            lines[place : place + len(gone)] = come
        else:
            place = _place(lines, before[:start], before[start:])
            lines[place:place] = come
    return files.joined(lines, like=live)


def without(new: str, added: Sequence[str]) -> str:
    """The text before ``added`` came, for a file whose earlier version lies outside the run's folder."""
    left = list(added)
    kept: list[str] = []
    for line in files.lines_of(new.rstrip()):
        if line in left:
            left.remove(line)
        else:
            kept.append(line)
    return files.joined(kept, like=new)


def _holds(lines: list[str], wanted: list[str]) -> bool:
    said = [line for line in wanted if line.strip()]
    return bool(said) and all(line in lines for line in said)


def _find(lines: list[str], wanted: list[str]) -> int | None:
    size = len(wanted)
    return next((at for at in range(len(lines) - size + 1) if lines[at : at + size] == wanted), None)


def _place(lines: list[str], above: list[str], below: list[str]) -> int:
    """After the nearest line that stood above, else before the nearest that stood below, else at the end."""
    for line in reversed(above):
        if line.strip() and line in lines:
            return len(lines) - lines[::-1].index(line)
    for line in below:
        if line.strip() and line in lines:
            return lines.index(line)
    return len(lines)
