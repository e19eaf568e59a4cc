"""Phase A: one agent proposes one change to the prompt surface; then everything about it is checked."""

from __future__ import annotations

from dataclasses import dataclass

from evolution.artifacts import frozen
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import (
    Patch,
    PatchInvalid,
    read_observation,
    read_patch,
    without_observation,
)
from evolution.artifacts.results import Draft, DryRunFailure
from evolution.briefs.draft import DraftBrief, draft_brief
from evolution.briefs.fix import FixBrief, fix_brief
from evolution.briefs.parts import EarlierDraft, FrozenContext
from evolution.checks import check_changes, check_locks
from evolution.conversation import answer_after, find_user_message
from evolution.errors import PhaseFailed, PhaseSkipped
from evolution.manifest import is_published
from evolution.phases.common import (
    DRAFTER,
    Asked,
    ask_internal,
    differing_paths,
    failure_of,
    read_meta,
    working_view,
)
from evolution.phases.context import PhaseContext

MAX_REASON_CHARS = 2_000
MAX_SKIP_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class DraftInput:
    """``locked``: the patterns of ``general.evolution.locked``. ``earlier``: ``selectors.earlier_drafts``."""

    locked: tuple[str, ...] = ()
    earlier: tuple[EarlierDraft, ...] = ()


def draft(ctx: PhaseContext, given: DraftInput) -> Draft:
    """Raises PhaseSkipped with the drafter's reason, PhaseFailed with the first check that wasn't met."""
    return _ask(ctx, given, session="draft", brief=draft_brief(_brief(ctx, given)))


def fix(ctx: PhaseContext, given: DraftInput, failed: Draft, failure: DryRunFailure) -> Draft:
    """The one corrective pass after a dry run without an answer; all checks again. Raises as ``draft``.

    ``failed`` is the draft as it stands in the sandbox; the drafter corrects it in place.
    """
    del failed  # its files are where the brief says
    told = FixBrief(draft=_brief(ctx, given), log=failure.log, failure=failure.reason)
    return _ask(ctx, given, session="fix", brief=fix_brief(told))


def _ask(ctx: PhaseContext, given: DraftInput, *, session: str, brief: str) -> Draft:
    files = AttemptFiles(ctx.folder)
    view = working_view(ctx, read=(), write=(files.patch, files.skip, files.sandbox))
    result = ask_internal(ctx, Asked(agent_id=DRAFTER, session=session, brief=brief, view=view))
    if failure := failure_of(result):
        raise PhaseFailed(f"The drafting agent did not finish: {failure}.")
    return _check(ctx, given, files)


def _check(ctx: PhaseContext, given: DraftInput, files: AttemptFiles) -> Draft:
    """In the order of evolution.md, "A draft"; the exit code came first."""
    if _skip_counts(files):
        raise PhaseSkipped(_skip_reason(files))
    patch = _patch(files)
    if not is_published(patch.target):
        raise PhaseFailed(
            f"The draft's target {patch.target} is outside the published surface. It may be INSTRUCTIONS.md, "
            "INDEX.md, USER.md or a file below agents/, prompts/ or skills/."
        )
    check_locks(ctx, [patch.target], given.locked)
    changed = check_changes(ctx, locked=given.locked, target=patch.target)
    _write_baseline(ctx, patch, files)
    ctx.evidence.vouch(files.patch)
    ctx.evidence.vouch_tree(ctx.sandbox)
    return Draft(patch=patch, changed=changed, observation=read_observation(files.folder))


def _skip_counts(files: AttemptFiles) -> bool:
    """Whichever of the two was written last counts; written in the same instant, the draft is kept."""
    if not files.skip.is_file():
        return False
    if not files.patch.is_file():
        return True
    return files.skip.stat().st_mtime_ns > files.patch.stat().st_mtime_ns


def _skip_reason(files: AttemptFiles) -> str:
    with files.skip.open("rb") as stream:
        text = stream.read(MAX_SKIP_BYTES).decode(errors="replace")
    return without_observation(text)[:MAX_REASON_CHARS] or "The drafter gave no reason."


def _patch(files: AttemptFiles) -> Patch:
    try:
        return read_patch(files.patch)
    except FileNotFoundError as error:
        raise PhaseFailed("The drafting agent wrote neither patch.md nor .skip.md.") from error
    except (PatchInvalid, OSError) as error:
        raise PhaseFailed(f"patch.md can't be used: {error}.") from error


def _write_baseline(ctx: PhaseContext, patch: Patch, files: AttemptFiles) -> None:
    """What the agent really answered; the drafter's word for it is not taken."""
    try:
        messages = frozen.read_messages(ctx.frozen)
    except frozen.FrozenUnreadable as error:
        raise PhaseFailed(f"The run's frozen files can't be used: {error}.") from error
    position = find_user_message(messages, patch.scenario.original_message)
    if position is None:
        raise PhaseFailed(
            "originalMessage is no message that the user wrote in this conversation; it must be copied "
            f"exactly. Found: {patch.scenario.original_message.strip()[:200]!r}."
        )
    ctx.evidence.write_text(files.baseline, answer_after(messages, position) + "\n")


def _brief(ctx: PhaseContext, given: DraftInput) -> DraftBrief:
    files, inputs = AttemptFiles(ctx.folder), frozen.FrozenFiles(ctx.frozen)
    meta = read_meta(ctx)
    return DraftBrief(
        run_id=meta.run_id,
        attempt=files.attempt,
        trigger=meta.trigger,
        session_id=meta.session_id,
        agent_id=meta.agent_id,
        language=ctx.language,
        hint=ctx.hint,
        workspace=ctx.workspace,
        conversation=inputs.snapshot,
        tool_flow=inputs.tool_flow,
        images=inputs.images if inputs.images.is_dir() else None,
        base=files.base,
        sandbox=files.sandbox,
        patch=files.patch,
        skip=files.skip,
        context=_context(ctx, inputs),
        locked=given.locked,
        earlier=given.earlier,
        differs=differing_paths(ctx),
    )


def _context(ctx: PhaseContext, inputs: frozen.FrozenFiles) -> FrozenContext:
    try:
        context = frozen.read_context(ctx.frozen)
    except frozen.FrozenUnreadable as error:
        raise PhaseFailed(f"The run's frozen files can't be used: {error}.") from error
    return FrozenContext(inputs.context, context.files, context.agents, context.skills)
