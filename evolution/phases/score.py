"""Phase C: a scorer compares what really happened with the control and the dry run."""

from __future__ import annotations

from evolution.artifacts.results import Control, DryRun
from evolution.artifacts.score import ScoreSummary
from evolution.phases.context import PhaseContext


def score(ctx: PhaseContext, dry: DryRun, control: Control, *, samples: int = 1) -> ScoreSummary:
    """Ask ``samples`` times in fresh sessions; every sample and ``score.json`` are kept.

    Raises PhaseFailed when a sample stays missing or malformed after it was asked for once more.
    """
    raise NotImplementedError
