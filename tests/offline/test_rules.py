"""The six forms: read from a text, written into one, kept by an answer and measured in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.offline import engine, obey
from agents.providers.offline.rules import Rule, find, in_force

POINTS = [
    "Thank you for writing.",
    "The parcel leaves at 15.",
    "The price is €6.90.",
    "It is 47 in long.",
    "Ask the carrier.",
]
RANKS = [2, 1, 3, 4, 0]


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("- Answer in at most two sentences.", "length", "2 sentences"),
        ("Keep answers under 40 words.", "length", "39 words"),
        ("no more than 3 short sentences, please", "length", "3 sentences"),
        ("Answer in one sentence.", "length", "1 sentences"),
        ("Give measures in metric units.", "units", "metric"),
        ("Write prices with the currency code.", "units", "currency code"),
        ('Begin every answer with "Hello from the shop."', "opening", "Hello from the shop."),
        ("Start each reply with the price, then the rest.", "opening", "the price"),
        ("Answer in prose, without lists.", "shape", "prose"),
        ("Answer as a bulleted list.", "shape", "list"),
        ("Always mention the order number.", "always", "the order number"),
        ("Never mention the warehouse and its staff.", "never", "the warehouse"),
    ],
)
def test_each_form_is_read(text: str, form: str, value: str) -> None:
    assert find(text) == [Rule(form, value)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rule",
    [
        Rule("length", "2 sentences"),
        Rule("length", "1 sentences"),
        Rule("length", "39 words"),
        Rule("units", "metric"),
        Rule("units", "currency code"),
        Rule("units", "currency sign"),
        Rule("opening", "Good day."),
        Rule("opening", "the price"),
        Rule("shape", "prose"),
        Rule("shape", "list"),
        Rule("always", "the carrier"),
        Rule("always", "the workshop"),
        Rule("never", "the parcel"),
    ],
)
def test_each_form_is_written_back_kept_and_measured(rule: Rule) -> None:
    assert find(rule.sentence) == [rule]
    plain = obey.write(POINTS, RANKS, [])
    kept = obey.write(POINTS, RANKS, [rule])
    assert obey.fit(rule, kept) == 100
    assert obey.fit(rule, plain) <= 100
    assert obey.fit(rule, "") == 0


def test_ordinary_prompt_text_holds_no_rule() -> None:
    text = "Be friendly and thorough.\nKeep answers short.\nUp to 14 on weekdays an order can be changed."
    assert find(text) == []


def test_the_later_of_two_contradicting_rules_holds() -> None:
    rules = find("Answer in at most five sentences.\nAlways mention the price.\nAnswer in one sentence.")
    assert in_force(rules) == [Rule("always", "the price"), Rule("length", "1 sentences")]


def test_rules_hold_together() -> None:
    rules = find(
        'Answer in at most three sentences. Always mention the workshop.\nBegin every answer with "Hello."\n'
        "Write amounts of money with the currency code."
    )
    text = obey.write(POINTS, RANKS, rules)
    assert text == "Hello. The price is 6.90 EUR. Please note: the workshop."
    assert all(obey.fit(rule, text) == 100 for rule in rules)


def test_fit_grows_as_an_answer_gets_shorter() -> None:
    rule = Rule("length", "2 sentences")
    fits = [obey.fit(rule, "It is so. " * count) for count in (8, 5, 3, 2, 1)]
    assert fits == sorted(fits)
    assert fits[0] == 25
    assert fits[-1] == 100


@given(st.text(max_size=600), st.text(max_size=300))
def test_no_text_upsets_the_engine(message: str, prompt: str) -> None:
    for heading in ("", "# Drafter\n", "# Scorer\n", "# Merger\n"):
        assert engine.step(engine.Situation(heading + prompt, f"# Brief: draft\n{message}", ()))
    rules = find(message)
    assert isinstance(obey.write(POINTS, RANKS, rules), str)
    assert all(0 <= obey.fit(rule, prompt) <= 100 for rule in rules)
