"""The drafter's brief: a conversation went wrong, propose the smallest lasting change to the prompt files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.briefs.layout import brief, fields, section
from evolution.briefs.parts import (
    EarlierDraft,
    FrozenContext,
    context_sections,
    earlier_section,
    hint_section,
    locked_section,
)


@dataclass(frozen=True, slots=True)
class DraftBrief:
    """Every path is absolute; ``base`` and ``sandbox`` are the ``.halo`` folders themselves.

    ``differs``: surface paths whose live content at the claim isn't what was frozen.
    """

    run_id: str
    attempt: int
    trigger: str
    session_id: str
    agent_id: str
    language: str
    hint: str
    workspace: Path
    conversation: Path
    tool_flow: Path
    base: Path
    sandbox: Path
    patch: Path
    skip: Path
    context: FrozenContext
    images: Path | None = None
    locked: tuple[str, ...] = ()
    earlier: tuple[EarlierDraft, ...] = ()
    differs: tuple[str, ...] = ()


PATCH_FORMAT = """`Patch` (patch.md): YAML frontmatter, then Markdown, laid out as here but without the indentation.

    ---
    target: agents/<id>/AGENT.md
    testScenario:
      agentId: <the agent that answers the test message>
      originalMessage: |-
        <the person's message in the conversation that was answered badly, copied exactly>
      testMessage: |-
        <another message, in the same language, whose good answer needs the same rule>
    ---
    ## What
    <what the change says, one or two sentences>

    ## Why
    <what went wrong in the conversation, and why this rule prevents it in general>

    ## Larger observation
    <optional, leave the heading out otherwise: something bigger than one prompt change, at most 2,000 characters>

`target` is relative to the sandbox's `.halo`, with forward slashes.
Published are INSTRUCTIONS.md, INDEX.md, USER.md, agents/, prompts/ and skills/; docs/ is there to be read.
Also write the whole new file into the sandbox, at `Sandbox`/<target>. A file that only exists with scope
global or builtin is changed by writing a workspace copy of it to the sandbox; the rest of its folder is
completed for you. Change nothing else: the sandbox must differ from `Base` in the target alone, unless the
change makes no sense without a second file.

`Skip` (.skip.md): instead of both, when there is nothing to change. Its text is the reason, shown to people;
it too may end with `## Larger observation`. Whichever of the two files you write last counts."""


def material(item: DraftBrief) -> str:
    """Identity, what to read, what to write: the same for a draft and for its correction."""
    return "\n\n".join(
        [
            section(
                "Run",
                fields(
                    [
                        ("Run", f"run-{item.run_id}"),
                        ("Attempt", item.attempt),
                        ("Trigger", item.trigger),
                        ("Session", item.session_id),
                        ("Agent", item.agent_id),
                        ("Language", item.language),
                        ("Workspace", item.workspace),
                    ]
                ),
                "Write patch.md, the reason of a skip, and your final message in `Language`. The prompt "
                "file itself stays in the language it is written in.",
            ),
            section(
                "Read",
                fields(
                    [
                        ("Tool flow", item.tool_flow),
                        ("Conversation", item.conversation),
                        ("Images", item.images),
                        ("Context", item.context.path),
                        ("Base", item.base),
                    ]
                ),
                "`Tool flow` is the conversation to skim, tool results clipped; `Conversation` is the "
                "whole of it, as JSON. `Base` holds the prompt files as they are live, untouched.",
            ),
            section(
                "Write",
                fields([("Patch", item.patch), ("Skip", item.skip), ("Sandbox", item.sandbox)]),
                PATCH_FORMAT,
            ),
        ]
    )


def situation(item: DraftBrief) -> str:
    """What is asked for, what must not be touched, what was there."""
    return "\n\n".join(
        [
            hint_section(
                "Hint",
                item.hint,
                empty="None was given. Find out from the agent's own rules what went wrong.",
            ),
            locked_section(item.locked),
            context_sections(item.context, differs=item.differs),
            earlier_section(item.earlier),
        ]
    )


def draft_brief(item: DraftBrief) -> str:
    task = section(
        "Task",
        "Read the conversation, find what the agent should have done otherwise, and write a draft: "
        "patch.md and the changed file in the sandbox, or .skip.md. Then end with one line that says "
        "which.",
    )
    return brief("draft", task, material(item), situation(item))
