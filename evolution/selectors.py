"""Reads for the pipeline and for views; nothing here writes."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

from django.db.models import Q

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import MAX_PATCH_BYTES, PatchInvalid, parse_patch, read_patch
from evolution.artifacts.results import Kept, Landed
from evolution.briefs.parts import EarlierDraft
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.places import folder_of, read_file, zip_of
from evolution.states import RunStatus

logger = logging.getLogger(__name__)

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
    data = _patch(run)
    if run.status == RunStatus.FAILED and not data:
        return None
    text = data.decode(errors="replace")
    try:
        target = parse_patch(text).target
    except PatchInvalid:
        target = ""
    return EarlierDraft(
        run_id=run.pk,
        outcome=_OUTCOMES[run.status],
        reason=run.decision_reason or run.failure_reason,
        target=target,
        patch=text[:_PATCH_CHARS],
    )


def _patch(run: EvolutionRun) -> bytes:
    """The draft's ``patch.md``; empty when there is none."""
    rel = AttemptFiles(Path("attempts") / str(run.attempts)).patch.as_posix()
    return read_file(folder_of(run), zip_of(run), rel, limit=MAX_PATCH_BYTES)


_MAX_KEPT_BYTES = 262_144


def scenarios_touched(apply: EvolutionApply, *, changed: Collection[str], limit: int) -> tuple[Kept, ...]:
    """The newest kept scenarios that an apply has to hold, newest first.

    It touches those whose target it changes, those of an agent in whose folder it changes something, and those
    of its own runs' agents. What its own runs left at an earlier landing is held by their regression already.
    """
    runs = list(apply.current_runs.values_list("pk", "agent_id"))
    agents = {agent for _, agent in runs} | {
        rel.split("/")[1] for rel in changed if rel.startswith("agents/") and rel.count("/") >= 2
    }
    rows = (
        RegressionScenario.objects.filter(workspace_id=apply.workspace_id, retired_at__isnull=True)
        .filter(Q(target__in=sorted(changed)) | Q(agent_id__in=sorted(agents)))
        .exclude(run_id__in=[run_id for run_id, _ in runs])
        .order_by("-pk")[:limit]
    )
    return tuple(
        Kept(scenario_id=row.pk, **{item.name: getattr(row, item.name) for item in fields(Landed)})
        for row in rows
    )


def landed_texts(apply: EvolutionApply) -> tuple[Landed, ...]:
    """What the runs of a published apply leave behind. One whose files are gone leaves nothing, and a log line."""
    evolution = apply.workspace.paths.evolution
    found = []
    for run in apply.current_runs.order_by("pk"):
        draft = AttemptFiles(evolution.run_attempt(run.pk, run.attempts))
        merged = AttemptFiles(evolution.apply_attempt(apply.pk, apply.snapshot_attempt or apply.attempts))
        try:
            patch = read_patch(draft.patch)
            answer = _head(merged.regress(run.pk).dry_run_output)
        except (OSError, PatchInvalid) as error:
            logger.warning("%s leaves no scenario behind: %s", run, error)
            continue
        found.append(
            Landed(
                run_id=run.pk,
                target=patch.target,
                agent_id=patch.scenario.agent_id,
                original_message=patch.scenario.original_message,
                test_message=patch.scenario.test_message,
                change=patch.body,
                baseline=_head(draft.baseline) if draft.baseline.is_file() else "",
                answer=answer,
            )
        )
    return tuple(found)


def _head(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(_MAX_KEPT_BYTES).decode(errors="replace")
