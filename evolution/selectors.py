"""Reads for the pipeline and for views; nothing here writes."""

from __future__ import annotations

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import PatchInvalid, read_patch
from evolution.briefs.parts import EarlierDraft
from evolution.models import EvolutionRun
from evolution.states import RunStatus

REMEMBERED = 5
_LOOKED_AT = 30
_OUTCOMES = {
    RunStatus.REJECTED.value: "rejected",
    RunStatus.FAILED.value: "failed",
    RunStatus.ROLLED_BACK.value: "rolled back",
}
_PATCH_CHARS = 4_000


def earlier_drafts(run: EvolutionRun) -> tuple[EarlierDraft, ...]:
    """The last five drafts for this agent that weren't kept, newest first, so that none is proposed again.

    A run that failed before it had a draft (the provider was down) teaches nothing and is left out.
    """
    rows = (
        EvolutionRun.objects.filter(
            workspace_id=run.workspace_id, agent_id=run.agent_id, status__in=list(_OUTCOMES)
        )
        .exclude(pk=run.pk)
        .select_related("workspace")
        .order_by("-id")[:_LOOKED_AT]
    )
    found = (draft for row in rows if (draft := _earlier(row)) is not None)
    return tuple(draft for draft, _ in zip(found, range(REMEMBERED), strict=False))


def _earlier(run: EvolutionRun) -> EarlierDraft | None:
    files = AttemptFiles(run.workspace.paths.evolution.run_attempt(run.pk, run.attempts))
    target, text = _patch(files)
    if run.status == RunStatus.FAILED and not text:
        return None
    return EarlierDraft(
        run_id=run.pk,
        outcome=_OUTCOMES[run.status],
        reason=run.decision_reason or run.failure_reason,
        target=target,
        patch=text,
    )


def _patch(files: AttemptFiles) -> tuple[str, str]:
    """Target and text of ``patch.md``; empty when there is none, the target also when it can't be read."""
    try:
        text = files.patch.read_text(errors="replace")[:_PATCH_CHARS]
    except OSError:
        return "", ""
    try:
        return read_patch(files.patch).target, text
    except (OSError, PatchInvalid):
        return "", text
