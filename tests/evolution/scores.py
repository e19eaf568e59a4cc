"""Scores for tests."""

from __future__ import annotations

from typing import Any

from evolution.artifacts.score import CHECKS, Score, ScoreSummary, summarise

GOOD_CHECKS = {name: words[0] for name, words in CHECKS.items()}


def score(**changed: Any) -> Score:
    checks = {**GOOD_CHECKS, **changed.pop("checks", {})}
    values: dict[str, Any] = {"lint": 100, "behavior": 100, "scope": 100, "confidence": "high", **changed}
    return Score(**values, checks=checks)


def perfect() -> ScoreSummary:
    return summarise([score()])
