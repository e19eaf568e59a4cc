"""The merger's brief: bring approved drafts into the files as they are now, within the reviewer's limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evolution.briefs.layout import block, brief, fields, section
from evolution.briefs.parts import ChangedFile, changes_section, hint_section, locked_section


@dataclass(frozen=True, slots=True)
class MergeSource:
    """One approved run: its current attempt's ``patch.md``, ``.halo`` folders, changes, its asker's hint."""

    run_id: str
    patch: Path
    base: Path
    sandbox: Path
    changed: tuple[ChangedFile, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class MergeBrief:
    """``base`` and ``sandbox`` are this apply's own ``.halo`` folders, just copied from the live surface."""

    apply_id: str
    attempt: int
    language: str
    reviewer_hint: str
    workspace: Path
    base: Path
    sandbox: Path
    log: Path
    abort: Path
    sources: tuple[MergeSource, ...]
    locked: tuple[str, ...] = ()


ARTIFACTS = """The files in `Sandbox`: edit them in place. Keep the rest of each file as it is, byte
for byte; keep what people changed since the drafts were made. Change no file that no source changes.

`Log` (apply.log), always when you merged: plain text, one line a source, in this form, then anything worth
knowing:
run-<id>: applied <target>: <what was taken, what was left out and why>

`Abort` (ABORT.md), instead of apply.log, when the sources can't all be applied together: they contradict each
other, the rule they change is gone, or the reviewer's hint rules them out. The first line, at most 300
characters, is the reason shown to people; after it, as much detail as helps. Half of the sources is never
applied in silence."""


def merge_brief(item: MergeBrief) -> str:
    task = section(
        "Task",
        "Bring every source below into the sandbox, which is the live surface as it is now. The "
        "reviewer's hint is a hard limit on what may be applied: leave out what it excludes, add nothing "
        "that no source asks for. Write apply.log, or ABORT.md. End with one line that says which.",
    )
    run = section(
        "Apply",
        fields(
            [
                ("Apply", f"apply-{item.apply_id}"),
                ("Attempt", item.attempt),
                ("Language", item.language),
                ("Workspace", item.workspace),
            ]
        ),
        "Write apply.log and ABORT.md in `Language`.",
    )
    return brief(
        "merge",
        task,
        run,
        section("Read", fields([("Base", item.base)])),
        section(
            "Write", fields([("Sandbox", item.sandbox), ("Log", item.log), ("Abort", item.abort)]), ARTIFACTS
        ),
        hint_section("Reviewer's hint", item.reviewer_hint, empty="None: apply the sources as they are."),
        locked_section(item.locked),
        *_sources(item.sources),
    )


def _sources(sources: Sequence[MergeSource]) -> list[str]:
    return [
        section(
            f"Source run-{source.run_id}",
            fields(
                [
                    ("Source", f"run-{source.run_id}"),
                    ("Patch", source.patch),
                    ("Source base", source.base),
                    ("Source sandbox", source.sandbox),
                ]
            ),
            block("hint", source.hint) if source.hint.strip() else "",
            changes_section(source.changed).removeprefix("## Changed files").strip(),
        )
        for source in sources
    ]
