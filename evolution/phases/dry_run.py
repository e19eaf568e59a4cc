"""Phase B: the patched agent answers the test message; the unpatched one does, for comparison."""

from __future__ import annotations

from collections.abc import Callable

from evolution.artifacts.results import Control, Draft, DryRun, DryRunFailure
from evolution.phases.context import PhaseContext


def dry_run(ctx: PhaseContext, draft: Draft, *, fix: Callable[[Draft, DryRunFailure], Draft]) -> DryRun:
    """``fix`` is ``draft.fix`` with its first two arguments given; ``DryRun.draft`` counts from now on.

    Raises PhaseFailed when the corrected draft gets no answer either.
    """
    raise NotImplementedError


def control(ctx: PhaseContext, draft: Draft) -> Control:
    """The test message answered once on the base. Not asked when ``general.evolution.control_run`` is off:
    the wrapper then passes ``Control()`` on. A control run without an answer is told in ``failure``.
    """
    raise NotImplementedError
