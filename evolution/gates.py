"""Whether a draft may apply itself: three gates in order, the first failure is the reason. Pure; no Django.

The decision is made at every level, so that a page can say what a higher one would have done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolution.artifacts.score import ScoreSummary
from evolution.changes import Category, Change


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


def decide(given: GateInput) -> Verdict:
    raise NotImplementedError
