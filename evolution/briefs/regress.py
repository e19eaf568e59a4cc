"""The scorer's brief after a merge: does each approved change still do its work among the others?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.artifacts.patch import Scenario
from evolution.briefs.judging import judging_brief
from evolution.briefs.parts import ChangedFile, hint_section


@dataclass(frozen=True, slots=True)
class RegressBrief:
    """``dry_run`` is the answer that was approved, ``answer`` the one given on the merged sandbox.

    With ``scenario_id`` the run landed earlier and is no part of this apply; its answer then is ``dry_run``.
    ``base`` and ``sandbox`` are the apply's ``.halo`` folders; ``changed`` what the apply will publish.
    """

    apply_id: str
    run_id: str
    sample: int
    language: str
    hint: str
    reviewer_hint: str
    scenario: Scenario
    patch: Path
    baseline: Path
    dry_run: Path
    answer: Path
    base: Path
    sandbox: Path
    changed: tuple[ChangedFile, ...]
    score: Path
    scenario_id: str = ""


_OF_A_SOURCE = (
    "The change of this run has been merged with what is live now and with other approved changes. "
    "`Answer` is what the agent says to `testMessage` on the merged files, `Dry run` what was "
    "approved, `Baseline` the real answer that led to the change. Judge whether the merged files "
    "still give what was approved: `behavior` 50 and above means that it holds, below 50 that it was "
    "lost or something else broke. A narrower answer that the reviewer's hint asked for is no loss. "
)
_OF_A_KEPT_SCENARIO = (
    "The change of this run landed earlier; what is under `Changed files` is another change that is about to "
    "land. `Answer` is what the agent says to `testMessage` on the files with that change in them, `Dry run` "
    "what it said when this run landed, `Baseline` the real answer that led to it. Judge whether what "
    "landed then still holds: `behavior` 50 and above means that it does, below 50 that it was lost. "
    "Another wording of the same is no loss. "
)


def regress_brief(item: RegressBrief) -> str:
    task = (
        _OF_A_KEPT_SCENARIO if item.scenario_id else _OF_A_SOURCE
    ) + "Read all of them, then write the score. End with one line: the three figures and your confidence."
    return judging_brief(
        "regress",
        task=task,
        judged=[
            ("Apply", f"apply-{item.apply_id}"),
            ("Run", f"run-{item.run_id}"),
            ("Scenario kept", f"scenario-{item.scenario_id}" if item.scenario_id else None),
            ("Sample", item.sample),
            ("Language", item.language),
        ],
        read=[
            ("Patch", item.patch),
            ("Baseline", item.baseline),
            ("Dry run", item.dry_run),
            ("Answer", item.answer),
            ("Base", item.base),
            ("Sandbox", item.sandbox),
        ],
        score=item.score,
        hints=[
            hint_section("Hint", item.hint, empty="None was given."),
            hint_section("Reviewer's hint", item.reviewer_hint, empty="None."),
        ],
        scenario=item.scenario,
        changed=item.changed,
    )
