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
class Gate:
    """What one gate says. ``reason`` is its code when it holds the draft back, ``words`` always say why."""

    name: str
    reason: str
    words: str

    @property
    def passed(self) -> bool:
        return not self.reason


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
    gates: tuple[Gate, ...]


def decide(given: GateInput) -> Verdict:
    gates = _gates(given, given.level)
    held = next((gate for gate in gates if not gate.passed), None)
    category = strictest_category(given.changes)
    needed = NEEDS[category] if category is not None else None
    would = needed if needed is not None and all(gate.passed for gate in _gates(given, needed)) else ""
    return Verdict(
        passed=held is None,
        reason=held.reason if held else "",
        words=_words(held, would),
        level=given.level,
        category=category,
        would_pass_at=would,
        changes=tuple(given.changes),
        gates=gates,
    )


def strictest_category(changes: Sequence[Change]) -> Category | None:
    return max((change.category for change in changes), key=lambda one: one.rank, default=None)


def _gates(given: GateInput, level: str) -> tuple[Gate, ...]:
    return (
        source_gate(given.source_access),
        category_gate(given.changes, level=level),
        score_gate(given.score, threshold=given.threshold, control_failure=given.control_failure),
    )


def _words(held: Gate | None, would_pass_at: str) -> str:
    if held is None:
        return "All gates passed."
    if would_pass_at and held.reason == "level":
        return f"{held.words} It would have passed at {would_pass_at}."
    return held.words


def source_gate(access: str) -> Gate:
    """``access``: the run's ``source_access``."""
    if access == "full":
        return Gate("source", "", "The conversation had full access and holds no data from outside.")
    if access == "webhook":
        return Gate(
            "source",
            "source_webhook",
            "The conversation holds data from outside (a webhook or an import), so a person has to decide.",
        )
    return Gate(
        "source",
        "source_access",
        f"The conversation was held at access level {access or 'unknown'}; only one at full may change "
        "prompts without a reviewer.",
    )


def category_gate(changes: Sequence[Change], *, level: str) -> Gate:
    """Asked once more before an auto apply is published, of what would then be published."""
    manual = next((change for change in changes if change.category is Category.MANUAL), None)
    if manual is not None:
        reason = f"category_manual:{manual.rel}({manual.why})"
        return Gate("category", reason, f"{manual.rel} is for a person to decide: {manual.why}.")
    category = strictest_category(changes)
    needed = NEEDS[category] if category is not None else None
    if category is None or needed is None:
        return Gate("category", "no_effective_change", "The draft changes nothing that sessions load.")
    if level not in LEVELS or LEVELS.index(level) < LEVELS.index(needed):
        words = f"A {category.value} change applies itself from {needed} on; the level is {level}."
        return Gate("category", "level", words)
    return Gate("category", "", f"A {category.value} change; {level} lets such a change through.")


def score_gate(score: ScoreSummary | None, *, threshold: int, control_failure: str = "") -> Gate:
    """The worst of all askings counts."""
    if score is None:
        return _held_by("score_missing", "There is no score that can be read.")
    lowest = score.lowest
    if not lowest.avg >= threshold:
        return _held_by("below_threshold", f"The lowest average is {lowest.avg:.2f}; {threshold} is wanted.")
    if lowest.confidence != "high":
        return _held_by("confidence", f"The scorer's confidence is {lowest.confidence}; high is wanted.")
    if lowest.behavior < BEHAVIOR_FLOOR:
        return _held_by(
            "behavior_floor", f"The lowest behavior is {lowest.behavior}; {BEHAVIOR_FLOOR} is wanted."
        )
    if lowest.lint < LINT_FLOOR:
        return _held_by("lint_floor", f"The lowest lint is {lowest.lint}; {LINT_FLOOR} is wanted.")
    for name, words in CHECKS.items():
        found = lowest.checks.get(name, "missing")
        if found != words[0]:
            return _held_by(f"checks:{name}", f"The check {name} says {found}; {words[0]} is wanted.")
    if control_failure:  # without its answer nobody knows whether the change moved anything
        return _held_by(
            "control_missing", f"The control run gave no answer to compare with: {control_failure}"
        )
    return Gate(
        "score",
        "",
        f"Lowest average {lowest.avg:.1f} ({threshold} is wanted), lowest behavior {lowest.behavior}, "
        f"lowest lint {lowest.lint}, every check good.",
    )


def _held_by(reason: str, words: str) -> Gate:
    return Gate("score", reason, words)
