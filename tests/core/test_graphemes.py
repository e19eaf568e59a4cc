"""Text is cut where a reader sees a character end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.graphemes import clusters


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("ab", ["a", "b"]),
        ("e\u0301x", ["e\u0301", "x"]),
        ("👩‍👩‍👧‍👦!", ["👩‍👩‍👧‍👦", "!"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("🇩🇪🇫🇷🇩", ["🇩🇪", "🇫🇷", "🇩"]),
        ("a🇩🇪🇫🇷", ["a", "🇩🇪", "🇫🇷"]),
        ("❤️x", ["❤️", "x"]),
        ("한국", ["한", "국"]),
        ("\u1112\u1161\u11ab\u1100", ["\u1112\u1161\u11ab", "\u1100"]),
        ("नि", ["नि"]),
        ("a\r\nb\n\u0301", ["a", "\r\n", "b", "\n", "\u0301"]),
        ("🏴\U000e0067\U000e0062\U000e007fx", ["🏴\U000e0067\U000e0062\U000e007f", "x"]),
    ],
)
def test_clusters(text: str, pieces: list[str]) -> None:
    assert list(clusters(text)) == pieces


@given(st.text())
def test_nothing_is_lost_and_nothing_begins_with_an_accent(text: str) -> None:
    found = list(clusters(text))
    assert "".join(found) == text
    assert all(found)
