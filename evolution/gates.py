"""Whether a draft may apply itself: three gates in order, the first failure is the reason. Pure; no Django.

The decision is made at every level, so that a page can say what a higher one would have done. A gate that
can't read its evidence is closed (invariant 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolution.artifacts.score import CHECKS, ScoreSummary
from evolution.changes import Category, Change

LEVELS = ("L0", "L1", "L2", "L3")
NEEDS: dict[Category, str | None] = {
    Category.PROMPT: "L2",
    Category.CAPABILITY: "L3",
    Category.MANUAL: None,
}
"""The lowest level at which a change of that category may apply itself; None: at none."""

BEHAVIOR_FLOOR = 70
LINT_FLOOR = 100


@dataclass(frozen=True, slots=True)
class GateInput:
    """``score`` None: there is no readable one. ``control_failure``: the control was due and gave no answer."""

    source_access: str
    level: str
    threshold: int
    changes: Sequence[Change]
    score: ScoreSummary | None
    control_failure: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is the code of the first gate that failed (empty: passed), ``words`` says it to a person.

    ``would_pass_at`` is the lowest level at which all gates pass, or empty: no level would.
    """

    passed: bool
    reason: str
    words: str
    level: str
    category: Category | None
    would_pass_at: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    words: str


def decide(given: GateInput) -> Verdict:
    category = max((change.category for change in given.changes), key=lambda one: one.rank, default=None)
    failure = _first_failure(given, given.level)
    needed = NEEDS[category] if category is not None else None
    would_pass_at = needed if needed is not None and _first_failure(given, needed) is None else ""
    return Verdict(
        passed=failure is None,
        reason=failure.reason if failure else "",
        words=_words(failure, would_pass_at),
        level=given.level,
        category=category,
        would_pass_at=would_pass_at,
        changes=tuple(given.changes),
    )


def _words(failure: _Failure | None, would_pass_at: str) -> str:
    if failure is None:
        return "All gates passed."
    if would_pass_at and failure.reason == "level":
        return f"{failure.words} It would have passed at {would_pass_at}."
    return failure.words


def _first_failure(given: GateInput, level: str) -> _Failure | None:
    return _source(given.source_access) or _category(given.changes, level) or _score(given)


def _source(access: str) -> _Failure | None:
    if access == "full":
        return None
    if access == "webhook":
        return _Failure(
            "source_webhook",
            "The conversation holds data from outside (a webhook or an import), so a person has to decide.",
        )
    return _Failure(
        "source_access",
        f"The conversation was held at access level {access or 'unknown'}; only one at full may change "
        "prompts without a reviewer.",
    )


def _category(changes: Sequence[Change], level: str) -> _Failure | None:
    if not changes:
        return _Failure("no_effective_change", "The draft changes nothing that sessions load.")
    manual = next((change for change in changes if change.category is Category.MANUAL), None)
    if manual is not None:
        return _Failure(
            f"category_manual:{manual.rel}({manual.why})",
            f"{manual.rel} is for a person to decide: {manual.why}.",
        )
    strictest = max((change.category for change in changes), key=lambda one: one.rank)
    needed = NEEDS[strictest]
    if needed is None or level not in LEVELS or LEVELS.index(level) < LEVELS.index(needed):
        return _Failure(
            "level", f"A {strictest.value} change applies itself from {needed} on; the level is {level}."
        )
    return None


def _score(given: GateInput) -> _Failure | None:
    score = given.score
    if score is None:
        return _Failure("score_missing", "There is no score that can be read.")
    lowest = score.lowest
    if not lowest.avg >= given.threshold:
        return _Failure(
            "below_threshold", f"The lowest average is {lowest.avg:.2f}; {given.threshold} is wanted."
        )
    if lowest.confidence != "high":
        return _Failure("confidence", f"The scorer's confidence is {lowest.confidence}; high is wanted.")
    if lowest.behavior < BEHAVIOR_FLOOR:
        return _Failure(
            "behavior_floor", f"The lowest behavior is {lowest.behavior}; {BEHAVIOR_FLOOR} is wanted."
        )
    if lowest.lint < LINT_FLOOR:
        return _Failure("lint_floor", f"The lowest lint is {lowest.lint}; {LINT_FLOOR} is wanted.")
    return _checks(lowest.checks) or _control(given.control_failure)


def _checks(checks: dict[str, str]) -> _Failure | None:
    for name, words in CHECKS.items():
        found = checks.get(name, "missing")
        if found != words[0]:
            return _Failure(f"checks:{name}", f"The check {name} says {found}; {words[0]} is wanted.")
    return None


def _control(failure: str) -> _Failure | None:
    """Without the control's answer nobody knows whether the change moved anything."""
    if not failure:
        return None
    return _Failure("control_missing", f"The control run gave no answer to compare with: {failure}")
