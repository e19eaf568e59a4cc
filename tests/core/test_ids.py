"""Identifiers: sortable, unguessable, safe as names."""

from __future__ import annotations

import pytest

from core.ids import is_row_id, is_session_id, new_row_id, new_session_segment


def test_row_ids_are_distinct_and_recognised() -> None:
    ids = [new_row_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(is_row_id(identifier) for identifier in ids)
    assert [identifier[:8] for identifier in ids] == sorted(identifier[:8] for identifier in ids)


def test_session_segments_make_session_ids() -> None:
    segments = {new_session_segment() for _ in range(1000)}
    assert len(segments) == 1000
    assert all(is_session_id(segment) for segment in segments)
    assert is_session_id(">".join(list(segments)[:3]))


@pytest.mark.parametrize(
    "text", ["", ">", "a>", ">a", "..", "a/b", "A", "a.b", "a\n", "a\0", "-a", "x" * 65, "a>../b", "ä"]
)
def test_what_would_be_an_unsafe_file_name_is_no_id(text: str) -> None:
    assert not is_session_id(text)
    assert not is_row_id(text)
