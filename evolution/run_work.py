"""The phases of a run, in their order, and where they end."""

from __future__ import annotations

from typing import cast

from evolution import gates, sandbox, transitions
from evolution.artifacts.results import Control
from evolution.artifacts.score import ScoreSummary
from evolution.artifacts.verdict import write_verdict
from evolution.gates import GateInput, Verdict
from evolution.job import Job
from evolution.models import EvolutionRun
from evolution.phases import draft, dry_run, score
from evolution.selectors import earlier_drafts


def work(job: Job) -> None:
    """Raises what phases raise: PhaseSkipped, PhaseFailed, ClaimLost, OSError."""
    run, ctx, look_up = cast(EvolutionRun, job.row), job.context(), job.settings.get
    job.enter("sandbox")
    sandbox.prepare_run(ctx)
    job.enter("draft")
    given = draft.DraftInput(
        locked=tuple(look_up("general.evolution.locked")), earlier=tuple(earlier_drafts(run))
    )
    drafted = draft.draft(ctx, given)
    job.enter("dry_run")
    dry = dry_run.dry_run(ctx, drafted, fix=lambda failed, failure: draft.fix(ctx, given, failed, failure))
    control = Control()
    if look_up("general.evolution.control_run"):
        job.enter("control")
        control = dry_run.control(ctx, dry.draft)
    job.enter("score")
    summary = score.score(ctx, dry, control, samples=look_up("general.evolution.score_samples"))
    job.enter("gates")
    sandbox.verify_untouched(ctx)
    verdict = gates.decide(
        GateInput(
            source_access=run.source_access,
            level=look_up("general.evolution.level"),
            threshold=look_up("general.evolution.auto_apply_threshold"),
            changes=sandbox.classified(ctx),
            score=summary,
            control_failure=control.failure,
        )
    )
    write_verdict(ctx.folder, verdict, dry.draft.observation)
    _end(job, summary, verdict, has_observation=dry.draft.has_observation)


def _end(job: Job, summary: ScoreSummary, verdict: Verdict, *, has_observation: bool) -> None:
    """Through the gates into an apply of its own, or to a reviewer, who is shown what held it back."""
    shown = summary.shown
    score = transitions.RunScore(
        lint=shown.lint,
        behavior=shown.behavior,
        scope=shown.scope,
        average=shown.avg,
        confidence=shown.confidence,
        spread=summary.spread,
    )
    end = transitions.pass_gates if verdict.passed else transitions.await_review
    job.finish(
        lambda claim, now: end(
            claim, score=score, auto_reason=verdict.reason, has_observation=has_observation, now=now
        )
    )
