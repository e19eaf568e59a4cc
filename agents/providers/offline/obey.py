"""An answer written under rules, and how well an answer keeps one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.providers.offline import units
from agents.providers.offline.rules import Rule, in_force, term
from agents.providers.offline.texts import list_item, sentences, without_marker, word_count

_MONEY = frozenset({"price", "prices", "cost", "costs", "total", "amount", "fee", "sum"})


def fit(rule: Rule, answer: str) -> int:
    """0 to 100: how far the answer keeps the rule. An empty answer keeps none."""
    if not answer.strip():
        return 0
    lines = [line for line in answer.splitlines() if line.strip()]
    said = sentences(answer)
    if rule.form == "length":
        length = word_count(answer) if "word" in rule.value else len(said)
        return min(100, round(100 * rule.count / length))
    if rule.form == "units":
        good, bad = units.counts(answer, rule.value)
        return round(100 * good / (good + bad)) if good + bad else 100
    if rule.form == "opening":
        return _opening_fit(rule.value, answer, said)
    if rule.form == "shape":
        items = sum(map(list_item, lines))
        return round(100 * (items if rule.value == "list" else len(lines) - items) / len(lines))
    mentioned = term(rule.value) in answer.lower()
    return 100 if mentioned == (rule.form == "always") else 0


def write(points: Sequence[str], ranks: Sequence[int], rules: Sequence[Rule]) -> str:
    """``points``: sentences in reading order; ``ranks``: their indices, the most to the point first."""
    held = {rule.form: rule for rule in in_force(rules)}
    for rule in rules:
        if rule.form == "never":
            ranks = [index for index in ranks if term(rule.value) not in points[index].lower()]
        if rule.form == "units":
            points = [units.convert(point, rule.value) for point in points]
    opening = held.get("opening")
    first = _hoisted(opening, points, ranks)
    if first is not None:
        ranks = [first, *(index for index in ranks if index != first)]
    before = [opening.value] if opening and not opening.value.startswith("the ") else []
    after = [
        f"Please note: {rule.value}."
        for rule in in_force(rules)
        if rule.form == "always" and not any(term(rule.value) in points[index].lower() for index in ranks[:1])
    ]
    chosen = _cut(points, ranks, held.get("length"), taken=[*before, *after])
    body = sorted(chosen) if first is None else [first, *sorted(set(chosen) - {first})]
    return _laid_out(before, [points[index] for index in body], after, held.get("shape"))


def _opening_fit(value: str, answer: str, said: Sequence[str]) -> int:
    if not value.startswith("the "):
        return 100 if answer.lstrip("-* ").lower().startswith(value.lower()) else 0
    places = [place for place, sentence in enumerate(said) if _about(value, sentence)]
    return max(0, 100 - 25 * places[0]) if places else 0


def _about(value: str, sentence: str) -> bool:
    if term(value).split()[-1] in _MONEY and units.amounts(sentence):
        return True
    return all(re.search(rf"\b{re.escape(word)}", sentence.lower()) for word in term(value).split())


def _hoisted(opening: Rule | None, points: Sequence[str], ranks: Sequence[int]) -> int | None:
    if opening is None or not opening.value.startswith("the "):
        return None
    return next((index for index in ranks if _about(opening.value, points[index])), None)


def _cut(
    points: Sequence[str], ranks: Sequence[int], length: Rule | None, *, taken: Sequence[str]
) -> list[int]:
    """The best points that fit beside what is ``taken``; always the best one."""
    if length is None:
        return list(ranks)
    measure = word_count if "word" in length.value else _sentence_count
    room = length.count - sum(map(measure, taken))
    chosen: list[int] = []
    for index in ranks:
        size = measure(points[index])
        if chosen and size > room:
            continue
        chosen.append(index)
        room -= size
    return chosen


def _sentence_count(text: str) -> int:
    return len(sentences(text))


def _laid_out(before: Sequence[str], body: Sequence[str], after: Sequence[str], shape: Rule | None) -> str:
    points = [without_marker(point) for point in [*body, *after]]
    if shape is not None and shape.value == "list":
        head = "".join(f"- {text}\n" for text in before)
        return head + "\n".join(f"- {point}" for point in points)
    lead = " ".join(text if text.endswith((".", "!", "?", ":", ",")) else f"{text}:" for text in before)
    return f"{lead} {' '.join(points)}".strip()
