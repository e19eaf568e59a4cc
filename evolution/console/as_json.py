"""Runs and applies as JSON for ``--json``."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from core import clock
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.run_view import RunView

if TYPE_CHECKING:
    from evolution.archive import ArchiveReport


def run_row(run: EvolutionRun) -> dict[str, Any]:
    return {
        "id": str(run),
        "status": run.status,
        "phase": run.phase,
        "progress": run.progress,
        "attempt": run.attempts,
        "roundAttempts": run.round_attempts,
        "workspace": run.workspace.path,
        "agent": run.agent_id,
        "session": run.source_session_id,
        "trigger": run.trigger_kind,
        "hint": run.user_hint,
        "score": {
            "average": run.score_avg,
            "lint": run.score_lint,
            "behavior": run.score_behavior,
            "scope": run.score_scope,
            "confidence": run.score_confidence,
            "spread": run.score_spread,
        },
        "skipReason": run.skip_reason,
        "failureReason": run.failure_reason,
        "autoReason": run.auto_reason,
        "hasObservation": run.has_observation,
        "apply": f"apply-{run.current_apply_id}" if run.current_apply_id else None,
        "decidedBy": run.decided_by.get_username() if run.decided_by else None,
        "decisionReason": run.decision_reason,
        "createdAt": moment(run.created_at),
        "startedAt": moment(run.started_at),
        "finishedAt": moment(run.finished_at),
    }


def apply_row(apply: EvolutionApply) -> dict[str, Any]:
    return {
        "id": str(apply),
        "status": apply.status,
        "phase": apply.phase,
        "progress": apply.progress,
        "attempt": apply.attempts,
        "workspace": apply.workspace.path,
        "runs": [f"run-{pk}" for pk in sorted(run.pk for run in apply.source_runs.all())],
        "approvedBy": apply.approved_by.get_username() if apply.approved_by else "auto",
        "reviewerHint": apply.reviewer_hint,
        "failureReason": apply.failure_reason,
        "drifted": apply.drifted,
        "keptDirs": apply.kept_dirs,
        "needsPerson": apply.needs_person,
        "rollback": apply.rollback_outcome,
        "rolledBackBy": apply.rolled_back_by.get_username() if apply.rolled_back_by else None,
        "createdAt": moment(apply.created_at),
        "finishedAt": moment(apply.finished_at),
    }


def run_page(view: RunView) -> dict[str, Any]:
    patch = view.patch
    return {
        **run_row(view.run),
        "folder": str(view.folder),
        "archivedAt": moment(view.run.archived_at),
        "unread": list(view.unread),
        "patch": asdict(patch) if patch else None,
        "observation": view.observation,
        "stale": view.is_stale,
        "changes": [
            {"file": change.rel, "stale": change.is_stale, "diff": change.diff()} for change in view.changes
        ],
        "answers": asdict(view.answers),
        "scoreDetail": asdict(view.score) if view.score else None,
        "gates": view.verdict,
    }


def scenario_row(row: RegressionScenario) -> dict[str, Any]:
    return {
        "id": str(row),
        "workspace": row.workspace.path,
        "run": f"run-{row.run_id}",
        "apply": f"apply-{row.apply_id}",
        "agent": row.agent_id,
        "target": row.target,
        "testMessage": row.test_message,
        "createdAt": moment(row.created_at),
        "retiredAt": moment(row.retired_at),
        "retiredBy": row.retired_by.get_username() if row.retired_by else None,
        "retiredReason": row.retired_reason,
    }


def scenario_page(row: RegressionScenario) -> dict[str, Any]:
    return {
        **scenario_row(row),
        "originalMessage": row.original_message,
        "change": row.change,
        "baseline": row.baseline,
        "answer": row.answer,
    }


def archive_report(report: ArchiveReport) -> dict[str, Any]:
    return {
        "archived": report.archived,
        "purged": report.purged,
        "rollbacksGone": report.rollbacks_gone,
        "finished": report.finished,
        "orphans": report.orphans,
        "reduced": report.reduced,
        "failed": report.failed,
    }


def moment(value: datetime | None) -> str | None:
    return clock.stamp(value) if value is not None else None
