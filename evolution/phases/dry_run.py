"""Phase B: the patched agent answers the test message; the unpatched one does, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Control, Draft, DryRun, DryRunFailure
from evolution.errors import PhaseFailed
from evolution.phases.common import ask_scenario, failure_of
from evolution.phases.context import ChildResult, PhaseContext

NEVER_SUCCEEDED = "dry-run never succeeded"


def dry_run(ctx: PhaseContext, draft: Draft, *, fix: Callable[[Draft, DryRunFailure], Draft]) -> DryRun:
    """``fix`` is ``draft.fix`` with its first two arguments given; ``DryRun.draft`` counts from now on.

    Raises PhaseFailed when the corrected draft gets no answer either.
    """
    first = _answer(ctx, draft, number=1)
    if isinstance(first, str):
        return DryRun(output=first, draft=draft)
    corrected = fix(draft, first)
    second = _answer(ctx, corrected, number=2)
    if isinstance(second, str):
        return DryRun(output=second, draft=corrected, fixed=True)
    raise PhaseFailed(f"{NEVER_SUCCEEDED}: {second.reason}")


def _answer(ctx: PhaseContext, draft: Draft, *, number: int) -> str | DryRunFailure:
    files = AttemptFiles(ctx.folder)
    result = ask_scenario(
        ctx,
        surface=files.sandbox,
        scenario=draft.patch.scenario,
        session=f"dry-run-{number}",
        output=files.dry_run_output,
    )
    reason = _unusable(result)
    if not reason:
        ctx.evidence.write_text(files.dry_run_output, result.text)
        return result.text
    log = files.dry_run_failure(number)
    ctx.evidence.write_text(log, _log_text(reason, result, ctx.child_log))
    return DryRunFailure(reason=reason, log=log)


def _unusable(result: ChildResult) -> str:
    if failure := failure_of(result):
        return f"The agent did not answer: {failure}."
    return "" if result.text.strip() else "The agent ended without any text."


def _log_text(reason: str, result: ChildResult, child_log: Path) -> str:
    return f"{reason}\n\nIts answer so far:\n{result.text}\n\nEverything it printed: {child_log}\n"


def control(ctx: PhaseContext, draft: Draft) -> Control:
    """The test message answered once on the base. Not asked when ``general.evolution.control_run`` is off:
    the wrapper then passes ``Control()`` on. A control run without an answer is told in ``failure``.
    """
    files = AttemptFiles(ctx.folder)
    result = ask_scenario(
        ctx,
        surface=files.base,
        scenario=draft.patch.scenario,
        session="control",
        output=files.control_output,
    )
    reason = _unusable(result)
    if reason:
        ctx.evidence.write_text(files.control_output, f"(No answer. {reason})\n")
        return Control(failure=reason)
    ctx.evidence.write_text(files.control_output, result.text)
    return Control(output=result.text)
