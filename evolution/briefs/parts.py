"""What several briefs show: the frozen prompt surface, changed files, earlier drafts, artifact formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evolution.briefs.layout import block, bullets, field, section


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A prompt file as frozen; ``rel`` is below ``.halo``, ``scope``: workspace, global, builtin."""

    rel: str
    scope: str
    content: str


@dataclass(frozen=True, slots=True)
class ContextItem:
    """An agent or a skill that was on offer."""

    id: str
    scope: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class FrozenContext:
    """``evo-context.json``, typed. ``path`` is that file, which also holds the assembled system prompt."""

    path: Path
    agent_id: str
    files: tuple[ContextFile, ...]
    agents: tuple[ContextItem, ...] = ()
    skills: tuple[ContextItem, ...] = ()


@dataclass(frozen=True, slots=True)
class EarlierDraft:
    """A draft for the same agent that a person or the pipeline did not keep.

    ``outcome``: rejected, failed or rolled back. ``patch`` is its ``patch.md`` (empty when none was written).
    """

    run_id: str
    outcome: str
    reason: str
    target: str = ""
    patch: str = ""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """``diff``: unified diff from base to sandbox; ``rel`` relative to ``.halo``."""

    rel: str
    diff: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """``testScenario`` of a ``patch.md``."""

    agent_id: str
    original_message: str
    test_message: str


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


def context_sections(context: FrozenContext, *, differs: Sequence[str]) -> str:
    """The prompt surface as it was when the run was asked for, and where the live one has moved on since."""
    shown = [block(f"{item.rel} ({item.scope})", item.content, rest=context.path) for item in context.files]
    moved = bullets(differs, empty="")
    note = f"These files have changed since; `Base` holds them as they are now:\n{moved}" if moved else ""
    return "\n\n".join(
        [
            section("Prompt files of the agent, as frozen", *shown, note),
            section("Agents", _items(context.agents)),
            section("Skills", _items(context.skills)),
        ]
    )


def _items(items: Sequence[ContextItem]) -> str:
    return bullets((f"{item.id} ({item.scope}): {item.description}" for item in items), empty="None.")


def locked_section(locked: Sequence[str]) -> str:
    return section(
        "Locked",
        bullets(locked, empty="None by pattern."),
        "A file that matches a pattern, or whose own `halo-locked` is true, must not be changed.",
    )


def hint_section(title: str, hint: str, *, empty: str) -> str:
    return section(title, block("hint", hint) if hint.strip() else empty)


def earlier_section(earlier: Sequence[EarlierDraft]) -> str:
    if not earlier:
        return section("Earlier drafts that were not kept", "None.")
    shown = [
        "\n".join(
            [
                f"### run-{item.run_id}: {item.outcome}",
                field("Target", item.target or "unknown"),
                block("reason", item.reason or "no reason given"),
                block("patch.md", item.patch) if item.patch else "",
            ]
        ).rstrip()
        for item in earlier[:5]
    ]
    return section(
        "Earlier drafts that were not kept",
        "Don't propose any of these again, nor the same rule in other words; heed the reasons.",
        *shown,
    )


def changes_section(changed: Sequence[ChangedFile]) -> str:
    return (
        section("Changed files", *(block(item.rel, item.diff) for item in changed))
        if changed
        else section("Changed files", "None.")
    )


def scenario_section(scenario: Scenario) -> str:
    return section(
        "Scenario",
        field("Scenario agent", scenario.agent_id),
        block("originalMessage", scenario.original_message),
        block("testMessage", scenario.test_message),
    )
