"""Phase B': every source run's scenario must still work on the merged sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import Patch, PatchInvalid, read_patch
from evolution.artifacts.results import Merge, RegressedRun, Regression, Source
from evolution.artifacts.score import Score, ScoreSummary, summarise, write_summary
from evolution.briefs.regress import RegressBrief, regress_brief
from evolution.errors import PhaseFailed
from evolution.phases.asking import ask_score
from evolution.phases.common import ask_scenario, brief_scenario, changed_files, failure_of
from evolution.phases.context import PhaseContext

FLOOR = 50
CONFIRMATIONS = 2
"""One asking is noise: a figure below the floor is asked for so many times more, and the median decides."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One source run on the merged sandbox. ``files`` is its folder below ``regress/``."""

    source: Source
    patch: Patch
    files: AttemptFiles
    merged: Merge
    hint: str


def regress(ctx: PhaseContext, sources: Sequence[Source], merged: Merge, hint: str) -> Regression:
    """``hint`` is the reviewer's. Raises PhaseFailed that names the run whose scenario no longer works."""
    runs = []
    for number, source in enumerate(sources, start=1):
        ctx.progress("regress", number, len(sources))
        case = _case(ctx, source, merged, hint)
        try:
            _answer(ctx, case)
            runs.append(_judge(ctx, case))
        except PhaseFailed as error:
            raise PhaseFailed(
                f"run-{source.run_id} no longer works after the merge: {error.reason}"
            ) from error
    return Regression(tuple(runs))


def _case(ctx: PhaseContext, source: Source, merged: Merge, hint: str) -> _Case:
    files = AttemptFiles(ctx.folder).regress(source.run_id)
    files.folder.mkdir(parents=True, exist_ok=True)
    try:
        patch = read_patch(AttemptFiles(source.folder).patch)
    except (OSError, PatchInvalid) as error:
        raise PhaseFailed(f"patch.md of run-{source.run_id} can't be used: {error}.") from error
    return _Case(source=source, patch=patch, files=files, merged=merged, hint=hint)


def _answer(ctx: PhaseContext, case: _Case) -> None:
    result = ask_scenario(
        ctx,
        surface=AttemptFiles(ctx.folder).sandbox,
        scenario=brief_scenario(case.patch),
        session=f"regress-{case.source.run_id}",
        output=case.files.dry_run_output,
    )
    if failure := failure_of(result):
        raise PhaseFailed(f"the agent did not answer: {failure}.")
    if not result.text.strip():
        raise PhaseFailed("the agent ended without any text.")
    ctx.evidence.write_text(case.files.dry_run_output, result.text)


def _judge(ctx: PhaseContext, case: _Case) -> RegressedRun:
    """Scored once; a figure below the floor is confirmed by two more askings, the median decides."""
    scores = [_score(ctx, case, 1)]
    if _below(scores):
        scores += [_score(ctx, case, sample) for sample in range(2, CONFIRMATIONS + 2)]
    summary = summarise(scores)
    write_summary(case.files.score, summary)
    ctx.evidence.vouch(case.files.score)
    if low := _below(scores):
        raise PhaseFailed(f"{low}; at least {FLOOR} is wanted.{_notes(summary)}")
    return RegressedRun(
        run_id=case.source.run_id,
        lint=_median(scores, "lint"),
        behavior=_median(scores, "behavior"),
        askings=len(scores),
    )


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


def _score(ctx: PhaseContext, case: _Case, sample: int) -> Score:
    source = AttemptFiles(case.source.folder)
    files = AttemptFiles(ctx.folder)
    path = case.files.score_sample(sample)
    brief = regress_brief(
        RegressBrief(
            apply_id=ctx.frozen.name,
            run_id=case.source.run_id,
            sample=sample,
            language=ctx.language,
            hint=case.source.hint,
            reviewer_hint=case.hint,
            scenario=brief_scenario(case.patch),
            patch=source.patch,
            baseline=source.baseline,
            dry_run=source.dry_run_output,
            answer=case.files.dry_run_output,
            base=files.base,
            sandbox=files.sandbox,
            changed=changed_files(ctx, ctx.folder, case.merged.changed),
            score=path,
        )
    )
    session = f"regress-score-{case.source.run_id}-{sample}"
    return ask_score(ctx, brief=brief, path=path, session=session, read=(case.source.folder,))
