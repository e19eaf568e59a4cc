"""Applies that landed and left their scenarios, and took them back."""

from __future__ import annotations

from evolution import transitions
from evolution.artifacts.results import Landed
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from tests.evolution.rows import Rows, fresh


def landed(run_id: str, **changed: str) -> Landed:
    return Landed(
        **{
            "run_id": run_id,
            "target": "INSTRUCTIONS.md",
            "agent_id": "writer",
            "original_message": "How long?",
            "test_message": "How far?",
            "change": "Numbers first.",
            "baseline": "It depends.",
            "answer": "Two hours.",
            **changed,
        }
    )


def land(rows: Rows, runs: list[EvolutionRun] | None = None, **changed: str) -> EvolutionApply:
    """An applied apply that left a scenario for each of its runs."""
    runs = runs or [rows.in_review()]
    apply, claim = rows.syncing(rows.approved(runs))
    transitions.finish_apply(claim, landed=[landed(run.pk, **changed) for run in runs], now=rows.now)
    return fresh(apply)


def scenario_of(apply: EvolutionApply) -> RegressionScenario:
    return RegressionScenario.objects.get(apply_id=apply.pk)


def roll_back(rows: Rows, apply: EvolutionApply) -> None:
    claim = transitions.begin_rollback(
        apply_id=apply.pk, attempts=apply.attempts, user=rows.user, force=False, seen=[], now=rows.now
    )
    transitions.finish_rollback(claim, outcome={"restored": []}, now=rows.now)
