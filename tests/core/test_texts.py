"""Text from outside, made fit for an encoder, a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import texts

ANY_TEXT = st.text(st.characters())  # lone surrogates included


@given(ANY_TEXT)
def test_whatever_it_was_it_can_be_encoded(text: str) -> None:
    clean = texts.encodable(text)
    assert clean.encode().decode() == clean
    assert texts.encodable(clean) == clean


def test_halves_of_a_character_that_stand_together_become_one() -> None:
    assert texts.encodable("a\ud83d\ude00b\ud800") == "a\U0001f600b\ufffd"


def test_values_are_cleaned_all_the_way_down() -> None:
    value = {"k\ud800": ["\ud800", {"x": "\udc00"}], "n": 1}
    assert texts.encodable_value(value) == {"k\ufffd": ["\ufffd", {"x": "\ufffd"}], "n": 1}


@pytest.mark.parametrize(("depth", "too_deep"), [(64, False), (65, True), (5_000, True)])
def test_deep_nesting_is_seen_without_recursion(depth: int, too_deep: bool) -> None:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    assert texts.nests_deeper(value) is too_deep


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b]0;title\x07b", "a\\x1b]0;title\\x07b"),
        ("\x9b31mred", "\\x9b31mred"),
        ("access = \u202e'nimda'", "access = \\u202e'nimda'"),
        ("hidden\u200b\u2060\U000e0041", "hidden\\u200b\\u2060\\U000e0041"),
        ("half \ud800", "half \\ud800"),
        ("one\r\ntwo\rover", "one\ntwo\\rover"),
        ("tab\tnaïve \U0001f468\u200d\U0001f469 漢字", "tab\tnaïve \U0001f468\u200d\U0001f469 漢字"),
    ],
)
def test_a_terminal_is_shown_what_it_must_not_obey(text: str, shown: str) -> None:
    assert texts.for_terminal(text) == shown


@given(ANY_TEXT)
def test_json_says_the_same_and_steers_no_terminal(text: str) -> None:
    written = texts.json_text({"text": text})
    assert json.loads(written) == {"text": text}
    assert texts.for_terminal(written) == written
