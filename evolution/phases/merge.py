"""Phase A': one or more approved drafts are brought into the surface as it is live now."""

from __future__ import annotations

from collections.abc import Sequence

from evolution.artifacts.results import Merge, Source
from evolution.phases.context import PhaseContext


def merge(ctx: PhaseContext, sources: Sequence[Source], hint: str, *, locked: tuple[str, ...] = ()) -> Merge:
    """``hint`` is the reviewer's. Raises PhaseFailed: the merger's own reason, or the first check not met."""
    raise NotImplementedError
