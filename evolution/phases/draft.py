"""Phase A: one agent proposes one change to the prompt surface; then everything about it is checked."""

from __future__ import annotations

from dataclasses import dataclass

from evolution.artifacts.results import Draft, DryRunFailure
from evolution.briefs.parts import EarlierDraft
from evolution.phases.context import PhaseContext


@dataclass(frozen=True, slots=True)
class DraftInput:
    """``locked``: the patterns of ``general.evolution.locked``. ``earlier``: ``selectors.earlier_drafts``."""

    locked: tuple[str, ...] = ()
    earlier: tuple[EarlierDraft, ...] = ()


def draft(ctx: PhaseContext, given: DraftInput) -> Draft:
    """Raises PhaseSkipped with the drafter's reason, PhaseFailed with the first check that wasn't met."""
    raise NotImplementedError


def fix(ctx: PhaseContext, given: DraftInput, failed: Draft, failure: DryRunFailure) -> Draft:
    """The one corrective pass after a dry run without an answer; all checks again. Raises as ``draft``."""
    raise NotImplementedError
