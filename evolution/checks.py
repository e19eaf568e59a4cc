"""What a draft and a merge must have in common: they changed something, only what they may, and it parses.

Every reason is a sentence for the run page, or a code where evolution.md names one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.texts import encodable, for_terminal, is_one_line
from evolution import changes, locks, sandbox
from evolution.agent_changes import read_agent
from evolution.artifacts.files import AttemptFiles
from evolution.category import Unreadable
from evolution.changes import Content, NoFile
from evolution.errors import PhaseFailed
from evolution.manifest import is_published
from evolution.phases.context import PhaseContext
from evolution.skill_changes import read_skill
from evolution.surface_folder import hash_surface, read_surface
from workspaces.overrides import MAX_PROMPT_BYTES


def check_changes(ctx: PhaseContext, *, locked: Sequence[str], target: str | None) -> tuple[str, ...]:
    """Complete new override folders, then check everything that differs; the surface paths that really do.

    ``target`` is the one file that must be among them (a draft's). Raises PhaseFailed.
    """
    files = AttemptFiles(ctx.folder)
    _check_outside(ctx, files)
    sandbox.complete(ctx)
    found = sandbox.proposed(files)
    before = sandbox.base_versions(files, ctx.global_folder)
    really = {rel: content for rel, content in found.items() if content != before.get(rel)}
    if target is None:  # a merge: publication never deletes, so a file it dropped is no change
        really = {rel: content for rel, content in really.items() if content is not None}
    _check_differs(files, really, target)
    for rel, content in really.items():
        if isinstance(content, NoFile):
            raise PhaseFailed(f"symlink:{rel}")
        if encodable(rel) != rel:  # no brief, page or row could name it
            raise PhaseFailed(f"{encodable(rel)} can't be published: its name is not UTF-8 text.")
        if not is_one_line(rel):
            raise PhaseFailed(f"{for_terminal(rel)} can't be published: its name holds control characters.")
    check_locks(ctx, tuple(really), locked)
    for rel, content in really.items():
        if isinstance(content, bytes) and (problem := parse_problem(rel, content)):
            raise PhaseFailed(f"{rel} can't be published: {problem}.")
    return tuple(really)


def _check_outside(ctx: PhaseContext, files: AttemptFiles) -> None:
    """Also what was copied for reading only, beside ``.halo``."""
    inside = [f".halo/{rel}" for rel in sandbox.proposed(files) if not is_published(rel)]
    before, after = hash_surface(ctx.base), hash_surface(ctx.sandbox)
    beside = [
        rel
        for rel in sorted(before.keys() | after.keys())
        if not rel.startswith(".halo/") and before.get(rel) != after.get(rel)
    ]
    if outside := inside + beside:
        raise PhaseFailed(
            f"{outside[0]} was changed, which is never published. Only INSTRUCTIONS.md, INDEX.md, USER.md, "
            "agents/, prompts/ and skills/ may change."
        )


def _check_differs(files: AttemptFiles, found: Mapping[str, Content | None], target: str | None) -> None:
    if target is not None and target not in found:
        if not (files.sandbox / target).exists():
            raise PhaseFailed(
                f"The draft names {target}, but no such file was written to the sandbox. The whole new file "
                "belongs there."
            )
        raise PhaseFailed(f"The draft names {target}, but that file is the same in the sandbox as before.")
    if target is not None and found[target] is None:
        raise PhaseFailed(f"The draft takes {target} away. A file is changed or added, never removed.")
    if not found:
        raise PhaseFailed("Nothing was changed in the sandbox.")


def check_locks(ctx: PhaseContext, rels: Sequence[str], patterns: Sequence[str]) -> None:
    """Raises PhaseFailed with ``locked:<rel>``."""
    files = AttemptFiles(ctx.folder)
    hidden = sandbox.hidden_surface(ctx.global_folder, ctx.base)
    before = changes.hides(read_surface(files.base), hidden)
    after = changes.hides(read_surface(files.sandbox), hidden)
    for rel in rels:
        if locks.is_locked(rel, patterns=patterns, before=before, after=after):
            raise PhaseFailed(f"locked:{rel}")


def parse_problem(rel: str, content: bytes) -> str:
    """Why a changed file can't be read as what it has to be; empty when it can."""
    try:
        if rel.endswith("/agent.yaml") and rel.count("/") == 2:
            read_agent(content)
        elif rel.endswith("/SKILL.md") and rel.count("/") == 2:
            read_skill(content)
        elif rel.endswith(".md"):
            if not rel.startswith("skills/") and len(content) > MAX_PROMPT_BYTES:
                return f"it is larger than {MAX_PROMPT_BYTES:,} bytes, so sessions would leave it out"
            if "\0" in content.decode():
                return "it holds a NUL character"
    except Unreadable as error:
        return str(error)
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 text (byte {error.start})"
    return ""
