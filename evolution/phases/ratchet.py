"""Phase B', the ratchet: what earlier runs showed to work has to work on the merged sandbox as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from core import atomic, clock
from core.ids import is_row_id
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import Scenario
from evolution.artifacts.results import Kept, KeptResult, Merge
from evolution.errors import PhaseFailed
from evolution.phases.common import changed_files
from evolution.phases.context import PhaseContext
from evolution.phases.holding import Case, hold

TOTAL_SEC = 3_600
EACH_SEC = 600
TIME_IS_UP = "the hour for all kept scenarios was over"


class _OutOfTime(Exception):
    """The hour for all of them is over."""


@dataclass(slots=True)
class _Hour:
    """``cut``: the child at work was given less than its usual time, so that its timeout says nothing."""

    monotonic: Callable[[], float]
    begun: float = field(init=False)
    cut: bool = False

    def __post_init__(self) -> None:
        self.begun = self.monotonic()

    def allowance(self, usual: int) -> int:
        usual, left = min(usual, EACH_SEC), self._left()
        if left < 1:
            raise _OutOfTime
        self.cut = left < usual
        return min(left, usual)

    def ended_it(self) -> bool:
        """Whether the last child ran into the end of the hour, not into its own."""
        return self.cut and self._left() < 1

    def _left(self) -> int:
        return int(TOTAL_SEC - (self.monotonic() - self.begun))


def ratchet(
    ctx: PhaseContext,
    kept: Sequence[Kept],
    merged: Merge,
    *,
    monotonic: Callable[[], float] = clock.suspended_seconds,
) -> tuple[KeptResult, ...]:
    """Re-run ``kept`` in this order; what the hour doesn't hold is reported as not run.

    How each went is written to ``regress/kept.json`` whatever the end. Raises PhaseFailed for the first that
    no longer works, naming it and the way to retire it.
    """
    if not kept:
        return ()
    results: list[KeptResult] = []
    try:
        _run_all(ctx, kept, merged, _Hour(monotonic), results)
    finally:
        done = {result.scenario_id for result in results}
        not_asked = [_not_run(item, "an earlier one failed") for item in kept if item.scenario_id not in done]
        _write(ctx, [*results, *not_asked])
    return tuple(results)


def _run_all(
    ctx: PhaseContext, kept: Sequence[Kept], merged: Merge, hour: _Hour, results: list[KeptResult]
) -> None:
    for number, item in enumerate(kept, start=1):
        ctx.progress("ratchet", number, len(kept))
        try:
            results.append(_one(ctx, item, merged, hour))
        except PhaseFailed as error:
            if hour.ended_it():
                results.append(_not_run(item, TIME_IS_UP))
                continue
            results.append(KeptResult(item.scenario_id, item.run_id, "failed", reason=error.reason))
            raise PhaseFailed(
                f"scenario-{item.scenario_id}, kept from run-{item.run_id}, no longer works after the merge: "
                f"{error.reason} If it no longer matters, retire it: "
                f"halo evo scenarios retire scenario-{item.scenario_id} --as USER"
            ) from error


def _one(ctx: PhaseContext, item: Kept, merged: Merge, hour: _Hour) -> KeptResult:
    try:
        judged = hold(ctx, _case(ctx, item, merged), allowance=hour.allowance)
    except _OutOfTime:
        return _not_run(item, TIME_IS_UP)
    return KeptResult(
        item.scenario_id,
        item.run_id,
        "held",
        lint=judged.lint,
        behavior=judged.behavior,
        askings=judged.askings,
    )


def _case(ctx: PhaseContext, item: Kept, merged: Merge) -> Case:
    """The row's texts as files, since scorers read files."""
    files = AttemptFiles(ctx.folder).kept_scenario(item.scenario_id)
    files.folder.mkdir(parents=True, exist_ok=True)
    ctx.evidence.write_text(files.patch, _patch_text(item))
    ctx.evidence.write_text(files.baseline, item.baseline)
    ctx.evidence.write_text(files.landed_answer, item.answer)
    return Case(
        name=f"scenario-{item.scenario_id}",
        run_id=item.run_id,
        scenario=Scenario(item.agent_id, item.original_message, item.test_message),
        files=files,
        patch=files.patch,
        baseline=files.baseline,
        approved=files.landed_answer,
        changed=changed_files(ctx, ctx.folder, merged.changed),
        scenario_id=item.scenario_id,
    )


def _patch_text(item: Kept) -> str:
    scenario = {
        "agentId": item.agent_id,
        "originalMessage": item.original_message,
        "testMessage": item.test_message,
    }
    head = json.dumps({"target": item.target, "testScenario": scenario})
    return f"---\n{head}\n---\n{item.change}\n"


def _not_run(item: Kept, reason: str) -> KeptResult:
    return KeptResult(item.scenario_id, item.run_id, "not_run", reason=reason)


def _write(ctx: PhaseContext, results: Sequence[KeptResult]) -> None:
    path = AttemptFiles(ctx.folder).kept_scenarios
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, [asdict(result) for result in results])


def read_kept_results(files: AttemptFiles) -> list[KeptResult]:
    """For pages; empty when there are none that can be read."""
    try:
        found: list[dict[str, Any]] = json.loads(files.kept_scenarios.read_bytes())
        return [KeptResult(**item) for item in found if is_row_id(item["scenario_id"])]
    except (OSError, ValueError, TypeError, KeyError):
        return []
