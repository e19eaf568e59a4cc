"""What several briefs show: the frozen prompt surface, changed files, earlier drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evolution.artifacts.frozen import Listing, PromptFile
from evolution.briefs.layout import block, bullets, field, section


@dataclass(frozen=True, slots=True)
class FrozenContext:
    """What a brief shows of ``evo-context.json``. ``path`` is that file; it also holds the whole system prompt."""

    path: Path
    files: tuple[PromptFile, ...]
    agents: tuple[Listing, ...] = ()
    skills: tuple[Listing, ...] = ()


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


def _items(items: Sequence[Listing]) -> str:
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
