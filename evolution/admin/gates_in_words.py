"""The gates one by one: what each said, and which were never asked because an earlier one held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from evolution.artifacts.score import ScoreSummary

State = Literal["pass", "held", "not asked"]
_NAMES = ("Source", "Category", "Score", "Level")


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    state: State
    words: str


def gates_in_words(verdict: dict[str, Any], score: ScoreSummary | None) -> list[Gate]:
    reason, level = str(verdict.get("reason", "")), str(verdict.get("level", "?"))
    held = None if verdict.get("passed") else _held(reason)
    states: list[State] = [_state(number, held) for number in range(len(_NAMES))]
    if held == 3:
        states[2] = "pass" if verdict.get("would_pass_at") else "held"
    if held == 2:
        states[3] = "pass"
    said = str(verdict.get("words", ""))
    passed = [
        "the conversation had full access and no outside data",
        f"a {verdict.get('category') or 'harmless'} change, not one that only a person may decide",
        _score_words(score),
        f"{level} lets such a change through",
    ]
    return [
        Gate(name, state, _words(number, state, held, said, passed))
        for number, (name, state) in enumerate(zip(_NAMES, states, strict=True))
    ]


def _held(reason: str) -> int:
    if reason.startswith("source_"):
        return 0
    if reason == "level":
        return 3
    return 1 if reason.startswith("category_") or reason == "no_effective_change" else 2


def _state(number: int, held: int | None) -> State:
    if held is None or number < held:
        return "pass"
    return "held" if number == held else "not asked"


def _words(number: int, state: State, held: int | None, said: str, passed: list[str]) -> str:
    if state == "pass":
        return passed[number]
    if state == "not asked":
        return "an earlier gate holds it already"
    return said if number == held else "no level would let this score through by itself"


def _score_words(score: ScoreSummary | None) -> str:
    if score is None:
        return "above every floor"
    lowest = score.lowest
    return f"lowest average {lowest.avg:.1f}, lowest behavior {lowest.behavior}, lowest lint {lowest.lint}"
