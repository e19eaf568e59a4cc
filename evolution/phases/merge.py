"""Phase A': one or more approved drafts are brought into the surface as it is live now."""

from __future__ import annotations

from collections.abc import Sequence

from evolution import changes, sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.results import Merge, Source
from evolution.briefs.merge import MergeBrief, MergeSource, merge_brief
from evolution.checks import check_changes
from evolution.errors import PhaseFailed
from evolution.phases.common import (
    MERGER,
    Asked,
    ask_internal,
    changed_files,
    failure_of,
    working_view,
)
from evolution.phases.context import PhaseContext
from evolution.surface_folder import read_surface

MAX_ABORT_CHARS = 300
MAX_LOG_BYTES = 1_048_576


def merge(ctx: PhaseContext, sources: Sequence[Source], hint: str, *, locked: tuple[str, ...] = ()) -> Merge:
    """``hint`` is the reviewer's. Raises PhaseFailed: the merger's own reason, or the first check not met."""
    files = AttemptFiles(ctx.folder)
    view = working_view(
        ctx,
        read=[source.folder for source in sources],
        write=(files.apply_log, files.abort, files.sandbox),
    )
    brief = merge_brief(_brief(ctx, sources, hint, locked))
    result = ask_internal(ctx, Asked(agent_id=MERGER, session="merge", brief=brief, view=view))
    if failure := failure_of(result):
        raise PhaseFailed(f"The merging agent did not finish: {failure}.")
    if files.abort.exists():
        raise PhaseFailed(abort_reason(files))
    log = _log(files)
    check_changes(ctx, locked=locked, target=None)
    _bring_line_endings(ctx, files)
    changed = check_changes(ctx, locked=locked, target=None)
    _check_sources(ctx, sources, changed)
    ctx.evidence.vouch_tree(ctx.sandbox)
    return Merge(changed=changed, log=log)


def abort_reason(files: AttemptFiles) -> str:
    """The first line of ``ABORT.md`` that says something, at most 300 characters."""
    with files.abort.open("rb") as stream:
        text = stream.read(MAX_LOG_BYTES).decode(errors="replace")
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:MAX_ABORT_CHARS] or "The merging agent gave up without a reason."


def _log(files: AttemptFiles) -> str:
    try:
        with files.apply_log.open("rb") as stream:
            return stream.read(MAX_LOG_BYTES).decode(errors="replace")
    except FileNotFoundError as error:
        raise PhaseFailed("The merging agent wrote neither apply.log nor ABORT.md.") from error


def _check_sources(ctx: PhaseContext, sources: Sequence[Source], changed: Sequence[str]) -> None:
    """Whoever let the drafts through has seen their files and no other."""
    drafted = {
        rel
        for source in sources
        for rel in sandbox.effective_changes(AttemptFiles(source.folder), ctx.global_folder)
    }
    for rel in changed:
        if rel not in drafted:
            raise PhaseFailed(f"beyond_sources:{rel}")


def _bring_line_endings(ctx: PhaseContext, files: AttemptFiles) -> None:
    """A file keeps the line endings it had; a new one follows what it hides."""
    before = changes.hides(read_surface(files.base), sandbox.hidden_surface(ctx.global_folder, ctx.base))
    for rel, content in sandbox.proposed(files).items():
        old = before.get(rel)
        if isinstance(content, bytes) and isinstance(old, bytes):
            wanted = with_line_endings(content, old)
            if wanted != content:
                (files.sandbox / rel).write_bytes(wanted)


def with_line_endings(content: bytes, example: bytes) -> bytes:
    """``content`` with CRLF or LF throughout, as ``example`` has it; untouched when the example mixes them."""
    crlf = example.count(b"\r\n")
    bare = example.count(b"\n") - crlf
    if (crlf and bare) or not (crlf or bare) or b"\0" in content:
        return content
    unix = content.replace(b"\r\n", b"\n")
    return unix.replace(b"\n", b"\r\n") if crlf else unix


def _brief(ctx: PhaseContext, sources: Sequence[Source], hint: str, locked: tuple[str, ...]) -> MergeBrief:
    files = AttemptFiles(ctx.folder)
    return MergeBrief(
        apply_id=ctx.frozen.name,
        attempt=files.attempt,
        language=ctx.language,
        reviewer_hint=hint,
        workspace=ctx.workspace,
        base=files.base,
        sandbox=files.sandbox,
        log=files.apply_log,
        abort=files.abort,
        sources=tuple(_source(ctx, source) for source in sources),
        locked=locked,
    )


def _source(ctx: PhaseContext, source: Source) -> MergeSource:
    files = AttemptFiles(source.folder)
    if not files.patch.is_file():
        raise PhaseFailed(f"run-{source.run_id} has no patch.md any more; retry the run.")
    return MergeSource(
        run_id=source.run_id,
        patch=files.patch,
        base=files.base,
        sandbox=files.sandbox,
        changed=changed_files(ctx, source.folder, sandbox.effective_changes(files, ctx.global_folder)),
        hint=source.hint,
    )
