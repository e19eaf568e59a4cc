"""The scorer's brief: was the drafted change good, judged by what happened without it and happens with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.artifacts.patch import Scenario
from evolution.briefs.judging import judging_brief
from evolution.briefs.parts import ChangedFile, hint_section


@dataclass(frozen=True, slots=True)
class ScoreBrief:
    """Paths are absolute; ``base`` and ``sandbox`` are the ``.halo`` folders; ``control`` None: not run."""

    run_id: str
    sample: int
    agent_id: str
    language: str
    hint: str
    scenario: Scenario
    patch: Path
    tool_flow: Path
    baseline: Path
    control: Path | None
    dry_run: Path
    base: Path
    sandbox: Path
    changed: tuple[ChangedFile, ...]
    score: Path


def score_brief(item: ScoreBrief) -> str:
    task = (
        "Judge the drafted change. `Baseline` is what the agent really answered to `originalMessage`; "
        "`Dry run` is what it answers to `testMessage` with the change, `Control` what it answers to the "
        "same message without it. Read all of them, the patch and the changed file, then write the score. "
        "End with one line: the three figures and your confidence."
    )
    no_hint = "None was given: judge by the agent's own rules and the patch's aim."
    return judging_brief(
        "score",
        task=task,
        judged=[
            ("Run", f"run-{item.run_id}"),
            ("Sample", item.sample),
            ("Agent", item.agent_id),
            ("Language", item.language),
        ],
        read=[
            ("Patch", item.patch),
            ("Baseline", item.baseline),
            ("Control", item.control if item.control is not None else "none was run"),
            ("Dry run", item.dry_run),
            ("Tool flow", item.tool_flow),
            ("Base", item.base),
            ("Sandbox", item.sandbox),
        ],
        score=item.score,
        hints=[hint_section("Hint", item.hint, empty=no_hint)],
        scenario=item.scenario,
        changed=item.changed,
    )
