"""The drafter's second brief: the draft stands, but its dry run failed. One correction, then the run ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.briefs.draft import DraftBrief, material, situation
from evolution.briefs.layout import block, brief, field, section


@dataclass(frozen=True, slots=True)
class FixBrief:
    """``failure`` is the tail of the dry run's output, or the reason its answer couldn't be used."""

    draft: DraftBrief
    log: Path
    failure: str


def fix_brief(item: FixBrief) -> str:
    task = section(
        "Task",
        "Your draft is in place: `Patch` and the file in the `Sandbox`. Its dry run failed: the "
        "scenario's agent, running on the sandbox, did not finish with an answer. Find out from `Log` "
        "whether the draft is the cause: a prompt file that doesn't parse, a tool or agent that doesn't "
        "exist, a rule that can't be obeyed, a test message that can't be answered. Correct the file in "
        "the sandbox, patch.md, or both; rewrite patch.md whole in any case. If nothing in the draft can "
        "be the cause, and no draft would help, write .skip.md. There is no third try. End with one line "
        "that says what you corrected.",
    )
    failure = section("Failure", field("Log", item.log), block("failure", item.failure, rest=item.log))
    return brief("fix", task, failure, material(item.draft), situation(item.draft))
