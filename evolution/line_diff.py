"""What differs between two lists of lines, in a bounded time whatever they are. No Django."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

CONTEXT = 3
MOST_PAIRS = 16_000_000
"""Lines of one side times those of the other. Beyond it a comparison can take minutes, of a page's or a run's."""

Opcode = tuple[str, int, int, int, int]


def groups(old: Sequence[str], new: Sequence[str]) -> Iterable[list[Opcode]]:
    """difflib's grouped opcodes. Of texts too large to be compared all between their common ends is one change."""
    start = _common(zip(old, new, strict=False))
    end = _common(zip(reversed(old[start:]), reversed(new[start:]), strict=False))
    middle = old[start : len(old) - end], new[start : len(new) - end]
    if len(middle[0]) * len(middle[1]) <= MOST_PAIRS:
        return difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT)
    return [list(_coarse(len(old), len(new), start, end))]


def _common(pairs: Iterator[tuple[str, str]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _coarse(old: int, new: int, start: int, end: int) -> Iterator[Opcode]:
    before, after = min(start, CONTEXT), min(end, CONTEXT)
    if before:
        yield ("equal", start - before, start, start - before, start)
    yield ("replace", start, old - end, start, new - end)
    if after:
        yield ("equal", old - end, old - end + after, new - end, new - end + after)


def unified(
    old: Sequence[str], new: Sequence[str], *, before_name: str, after_name: str, end: str = ""
) -> Iterator[str]:
    """A unified diff, line for line; ``end`` closes its own lines, those of the texts are as they are."""
    for number, group in enumerate(groups(old, new)):
        if not number:
            yield f"--- {before_name}{end}"
            yield f"+++ {after_name}{end}"
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@{end}"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[old_from:old_to])
                continue
            yield from (f"-{line}" for line in old[old_from:old_to])
            yield from (f"+{line}" for line in new[new_from:new_to])


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
