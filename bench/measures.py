"""One measured figure with its target, and the percentiles of many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Measure:
    """``figures`` by name (``p50``, ``p95``, ``rate``, ...) in ``unit``; ``at_most`` and ``at_least`` are targets.

    A figure without a target is shown beside the others and can't be missed.
    """

    what: str
    unit: str
    figures: Mapping[str, float]
    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def missed(self) -> list[str]:
        too_much = [name for name, limit in self.at_most.items() if self.figures[name] > limit]
        too_little = [name for name, limit in self.at_least.items() if self.figures[name] < limit]
        return too_much + too_little

    @property
    def verdict(self) -> str:
        if not self.at_most and not self.at_least:
            return ""
        return "missed" if self.missed else "met"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Measure:
        return cls(**{key: item for key, item in value.items() if key != "verdict"})


def percentiles(samples: Sequence[float], *, scale: float = 1.0) -> dict[str, float]:
    """p50 and p95 by nearest rank, and the maximum."""
    ordered = sorted(sample * scale for sample in samples)
    return {"p50": _rank(ordered, 0.50), "p95": _rank(ordered, 0.95), "max": ordered[-1]}


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
