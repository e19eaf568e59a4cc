"""Whether a scenario still works on the merged sandbox: answered once, scored, a low figure confirmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import Scenario
from evolution.artifacts.score import Score, ScoreSummary, summarise, write_summary
from evolution.briefs.parts import ChangedFile
from evolution.briefs.regress import RegressBrief, regress_brief
from evolution.errors import PhaseFailed
from evolution.phases.asking import ask_score
from evolution.phases.common import CHILD_SEC, SCENARIO_SEC, ask_scenario, failure_of
from evolution.phases.context import PhaseContext

FLOOR = 50
CONFIRMATIONS = 2
"""One asking is noise: a figure below the floor is asked for so many times more, and the median decides."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario on the merged sandbox.

    ``name`` tells its sessions apart; ``files`` is its own folder below ``regress/``. ``approved`` holds the
    answer it is held to. ``read``: folders the scorer needs beside the attempt's own.
    """

    name: str
    run_id: str
    scenario: Scenario
    files: AttemptFiles
    patch: Path
    baseline: Path
    approved: Path
    changed: tuple[ChangedFile, ...]
    hint: str = ""
    reviewer_hint: str = ""
    scenario_id: str = ""
    read: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The median of all askings."""

    lint: int
    behavior: int
    askings: int


Allowance = Callable[[int], int]
"""How many of the seconds a child usually has it may take now; it raises where there are none left."""


def hold(ctx: PhaseContext, case: Case, *, allowance: Allowance = lambda usual: usual) -> Judgement:
    """Raises PhaseFailed: no answer, no valid score, or a figure below the floor."""
    _answer(ctx, case, allowance)
    scores = [_score(ctx, case, 1, allowance)]
    if _below(scores):
        scores += [_score(ctx, case, sample, allowance) for sample in range(2, CONFIRMATIONS + 2)]
    summary = summarise(scores)
    write_summary(case.files.score, summary)
    ctx.evidence.vouch(case.files.score)
    if low := _below(scores):
        raise PhaseFailed(f"{low}; at least {FLOOR} is wanted.{_notes(summary)}")
    return Judgement(_median(scores, "lint"), _median(scores, "behavior"), len(scores))


def _answer(ctx: PhaseContext, case: Case, allowance: Allowance) -> None:
    result = ask_scenario(
        ctx,
        surface=AttemptFiles(ctx.folder).sandbox,
        scenario=case.scenario,
        session=f"regress-{case.name}",
        output=case.files.dry_run_output,
        timeout_sec=allowance(SCENARIO_SEC),
    )
    if failure := failure_of(result):
        raise PhaseFailed(f"the agent did not answer: {failure}.")
    if not result.text.strip():
        raise PhaseFailed("the agent ended without any text.")
    ctx.evidence.write_text(case.files.dry_run_output, result.text)


def _median(scores: Sequence[Score], name: str) -> int:
    return median_low([getattr(score, name) for score in scores])


def _below(scores: Sequence[Score]) -> str:
    """The figure below the floor in words; empty when both hold."""
    for name in ("lint", "behavior"):
        if (figure := _median(scores, name)) < FLOOR:
            return f"{name} is {figure} after {len(scores)} asking{'s' if len(scores) > 1 else ''}"
    return ""


def _notes(summary: ScoreSummary) -> str:
    notes = " ".join(summary.samples[0].notes.split())[:300]
    return f" The scorer: {notes}" if notes else ""


def _score(ctx: PhaseContext, case: Case, sample: int, allowance: Allowance) -> Score:
    files = AttemptFiles(ctx.folder)
    path = case.files.score_sample(sample)
    brief = regress_brief(
        RegressBrief(
            apply_id=ctx.frozen.name,
            run_id=case.run_id,
            sample=sample,
            language=ctx.language,
            hint=case.hint,
            reviewer_hint=case.reviewer_hint,
            scenario=case.scenario,
            patch=case.patch,
            baseline=case.baseline,
            dry_run=case.approved,
            answer=case.files.dry_run_output,
            base=files.base,
            sandbox=files.sandbox,
            changed=case.changed,
            score=path,
            scenario_id=case.scenario_id,
        )
    )
    return ask_score(
        ctx,
        brief=brief,
        path=path,
        session=f"regress-score-{case.name}-{sample}",
        read=case.read,
        timeout=lambda: allowance(CHILD_SEC),
    )
