"""What a scorer is given, before a review and after a merge alike: what to compare, and how to write the score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evolution.artifacts.patch import Scenario
from evolution.briefs.layout import block, brief, field, fields, section
from evolution.briefs.parts import ChangedFile, changes_section

Field = tuple[str, str | Path | int | None]

SCORE_FORMAT = """Write one JSON object and nothing else to the file named `Score`:

{
  "lint": 0-100, "behavior": 0-100, "scope": 0-100,
  "confidence": "high" | "medium" | "low",
  "notes": "two to five sentences: what you compared, what decided each number",
  "checks": {
    "patchInSandbox": "pass" | "fail",
    "usedInDryRun": "yes" | "no" | "unclear",
    "probe": "valid" | "soft" | "invalid",
    "probeLanguage": "same" | "different"
  }
}

The three figures are whole numbers; 50 means neither better nor worse. No average: it is computed for you."""


def judging_brief(
    title: str,
    *,
    task: str,
    judged: Sequence[Field],
    read: Sequence[Field],
    score: Path,
    hints: Sequence[str],
    scenario: Scenario,
    changed: Sequence[ChangedFile],
) -> str:
    """``judged`` says what and in which language; ``hints`` are whole sections."""
    return brief(
        title,
        section("Task", task),
        section("Run", fields(judged), "Write `notes` in `Language`."),
        section("Read", fields(read)),
        section("Write", fields([("Score", score)]), SCORE_FORMAT),
        *hints,
        _scenario_section(scenario),
        changes_section(changed),
    )


def _scenario_section(scenario: Scenario) -> str:
    return section(
        "Scenario",
        field("Scenario agent", scenario.agent_id),
        block("originalMessage", scenario.original_message),
        block("testMessage", scenario.test_message),
    )
