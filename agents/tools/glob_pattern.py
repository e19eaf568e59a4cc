"""A glob over relative paths, matched in time that no pattern can blow up. Python 3.9 too.

A regular expression made from ``*a*a*a*b`` backtracks for hours over one long name, and holds the whole
process meanwhile. Here every star is tried once from left to right: what lies between two stars has a fixed
length, and taking its first place is never worse than taking a later one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.tools.context import ToolError

ALTERNATIVES_AT_MOST = 100
PATTERN_CHARS = 1_000

_PIECES = re.compile(r"\*+|\?|\[[^\]]+\]|[^*?\[]+|\[")


class GlobPattern:
    """``*`` and ``?`` match within a name, ``**`` as a whole name any folders, ``{a,b}`` either, ``[ab]`` one
    character. Without a slash it matches in any folder. Raises ToolError for a pattern that can't be one.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_CHARS:
            raise ToolError(f"The pattern has {len(pattern)} characters; {PATTERN_CHARS} are the most.")
        if "/" not in pattern:
            pattern = f"**/{pattern}"
        try:
            self._ways = [[_Name(name) for name in way.split("/")] for way in _expanded(pattern)]
        except re.error as error:
            raise ToolError(f"{pattern!r} is not a valid pattern: {error}.") from None

    def matches(self, path: str) -> bool:
        names = path.split("/")
        return any(_names_match(way, names) for way in self._ways)


class _Name:
    """One part between slashes: pieces of fixed length with stars between them; ``any_folders`` for ``**``."""

    def __init__(self, pattern: str) -> None:
        self.any_folders = pattern == "**"
        pieces = [""]
        for found in _PIECES.findall(pattern):
            if found[0] == "*":
                pieces.append("")
            else:
                pieces[-1] += _translated(found)
        self._only = re.compile(pieces[0], re.DOTALL) if len(pieces) == 1 else None
        self._first = re.compile(pieces[0], re.DOTALL)
        self._between = [re.compile(piece, re.DOTALL) for piece in pieces[1:-1] if piece]
        self._last = re.compile(f"(?:{pieces[-1]})\\Z", re.DOTALL)

    def matches(self, name: str) -> bool:
        if self._only is not None:
            return self._only.fullmatch(name) is not None
        found = self._first.match(name)
        for piece in self._between:
            if found is None:
                return False
            found = piece.search(name, found.end())
        return found is not None and self._last.search(name, found.end()) is not None


def _names_match(way: Sequence[_Name], names: Sequence[str]) -> bool:
    """The same from left to right, with ``**`` for the star; at the end of a pattern it stands for one at least."""
    at_pattern = at_name = 0
    back_pattern, back_name = -1, 0
    while at_name < len(names):
        if at_pattern < len(way) and way[at_pattern].any_folders:
            if at_pattern == len(way) - 1:
                return True
            back_pattern, back_name = at_pattern, at_name
            at_pattern += 1
        elif at_pattern < len(way) and way[at_pattern].matches(names[at_name]):
            at_pattern, at_name = at_pattern + 1, at_name + 1
        elif back_pattern >= 0:
            back_name += 1
            at_pattern, at_name = back_pattern + 1, back_name
        else:
            return False
    return at_pattern == len(way)


def _translated(piece: str) -> str:
    if piece == "?":
        return "."
    if len(piece) > 2 and piece[0] == "[" and piece[-1] == "]":
        inner = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return "[" + ("^" + inner[1:] if inner[0] == "!" else inner) + "]"
    return re.escape(piece)


def _expanded(pattern: str) -> list[str]:
    """One pattern for each choice of alternatives; a brace that is never closed is text."""
    waiting, done = [pattern], list[str]()
    while waiting:
        if len(waiting) + len(done) > ALTERNATIVES_AT_MOST:
            raise ToolError(f"The pattern has more than {ALTERNATIVES_AT_MOST} alternatives.")
        text = waiting.pop()
        found = _first_braces(text)
        if found is None:
            done.append(text)
            continue
        start, end, choices = found
        waiting += [text[:start] + choice + text[end + 1 :] for choice in choices]
    return done


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    """Where the first pair of braces stands, and what it offers; inner braces stay in the choices."""
    starts: list[int] = []
    commas: list[list[int]] = []
    closed: dict[int, tuple[int, list[int]]] = {}
    for place, character in enumerate(text):
        if character == "{":
            starts.append(place)
            commas.append([])
        elif character == "," and commas:
            commas[-1].append(place)
        elif character == "}" and starts:
            closed[starts.pop()] = (place, commas.pop())
    if not closed:
        return None
    start = min(closed)
    end, cuts = closed[start]
    edges = [start, *cuts, end]
    return start, end, [text[edges[place] + 1 : edges[place + 1]] for place in range(len(edges) - 1)]
