"""Diffs as difflib makes them, and in a bounded time where difflib's could take minutes."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution import line_diff
from evolution.diff_rows import side_by_side
from evolution.line_diff import unified

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30)


@given(old=LINES, new=LINES)
def test_it_is_difflibs_unified_diff(old: list[str], new: list[str]) -> None:
    made = list(unified(old, new, before_name="x", after_name="y"))
    assert made == list(difflib.unified_diff(old, new, "x", "y", lineterm=""))


@given(old=LINES, new=LINES)
def test_a_coarse_one_leads_from_the_one_text_to_the_other_as_well(old: list[str], new: list[str]) -> None:
    """Lines that the hunk leaves out are the same on both sides."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(line_diff, "MOST_PAIRS", -1)
        found = list(line_diff.groups(old, new))
    [group] = found
    first, last = group[0], group[-1]
    assert old[: first[1]] == new[: first[3]] and old[last[2] :] == new[last[4] :]
    assert [first[1] == 0 or first[0] == "equal", last[2] == len(old) or last[0] == "equal"] == [True, True]
    for tag, old_from, old_to, new_from, new_to in group:
        assert tag == "replace" or old[old_from:old_to] == new[new_from:new_to]


def test_large_texts_are_not_compared_line_for_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: object) -> None:
        raise AssertionError("this could take minutes")

    old = [f"line {number}" for number in range(5_000)]
    new = [f"line {(number * 7 + 1) % 5_000}" for number in range(5_000)]
    monkeypatch.setattr(difflib, "SequenceMatcher", compared)
    shown = side_by_side("\n".join(["head", *old]).encode(), "\n".join(["head", *new, "more"]).encode())
    assert (shown.added, shown.removed) == (5_001, 5_000)
    assert [row.kind for row in shown.rows[:2]] == ["same", "change"], "the common beginning is told"
    diff = list(unified(old, new, before_name="x", after_name="y"))
    assert diff[:3] == ["--- x", "+++ y", "@@ -1,5000 +1,5000 @@"] and len(diff) == 3 + 2 * 5_000


def test_a_large_text_with_a_small_change_is_compared_as_ever() -> None:
    old = [f"line {number}" for number in range(50_000)]
    new = [*old[:40_000], "inserted", *old[40_001:]]
    diff = list(unified(old, new, before_name="x", after_name="y"))
    assert diff == list(difflib.unified_diff(old, new, "x", "y", lineterm=""))
    assert len(diff) == 3 + 8
