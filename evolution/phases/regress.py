"""Phase B': every source run's scenario must still work on the merged sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from evolution.artifacts.results import Merge, Regression, Source
from evolution.phases.context import PhaseContext

FLOOR = 50


def regress(ctx: PhaseContext, sources: Sequence[Source], merged: Merge, hint: str) -> Regression:
    """``hint`` is the reviewer's. Raises PhaseFailed that names the run whose scenario no longer works."""
    raise NotImplementedError
