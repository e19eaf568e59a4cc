"""Phase C: a scorer compares what really happened with the control and the dry run."""

from __future__ import annotations

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import FrozenFiles
from evolution.artifacts.results import Control, DryRun
from evolution.artifacts.score import ScoreSummary, summarise, write_summary
from evolution.briefs.score import ScoreBrief, score_brief
from evolution.phases.asking import ask_score
from evolution.phases.common import changed_files, read_meta
from evolution.phases.context import PhaseContext


def score(ctx: PhaseContext, dry: DryRun, control: Control, *, samples: int = 1) -> ScoreSummary:
    """Ask ``samples`` times in fresh sessions; every sample and ``score.json`` are kept.

    Raises PhaseFailed when a sample stays missing or malformed after it was asked for once more.
    """
    files = AttemptFiles(ctx.folder)
    scores = []
    for sample in range(1, samples + 1):
        ctx.progress("score", sample, samples)
        brief = score_brief(_brief(ctx, dry, control, sample))
        scores.append(ask_score(ctx, brief=brief, path=files.score_sample(sample), session=f"score-{sample}"))
    summary = summarise(scores, capped=control.same_as(dry))
    write_summary(files.score, summary)
    ctx.evidence.vouch(files.score)
    return summary


def _brief(ctx: PhaseContext, dry: DryRun, control: Control, sample: int) -> ScoreBrief:
    files = AttemptFiles(ctx.folder)
    meta = read_meta(ctx)
    was_run = control.output is not None or control.failure
    return ScoreBrief(
        run_id=meta.run_id,
        sample=sample,
        agent_id=meta.agent_id,
        language=ctx.language,
        hint=ctx.hint,
        scenario=dry.draft.patch.scenario,
        patch=files.patch,
        tool_flow=FrozenFiles(ctx.frozen).tool_flow,
        baseline=files.baseline,
        control=files.control_output if was_run else None,
        dry_run=files.dry_run_output,
        base=files.base,
        sandbox=files.sandbox,
        changed=changed_files(ctx, ctx.folder, dry.draft.changed),
        score=files.score_sample(sample),
    )
