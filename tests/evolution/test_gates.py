"""Three gates in order; the verdict at every level."""

from __future__ import annotations

from typing import Any

import pytest

from evolution.artifacts.score import summarise
from evolution.changes import Category, Change
from evolution.gates import GateInput, decide
from tests.evolution.scores import perfect, score

PROMPT = Change("INSTRUCTIONS.md", Category.PROMPT, "text")
CAPABILITY = Change("agents/a/agent.yaml", Category.CAPABILITY, "tools")
MANUAL = Change("USER.md", Category.MANUAL, "the profile of a person")


def given(**changed: Any) -> GateInput:
    values: dict[str, Any] = {
        "source_access": "full",
        "level": "L2",
        "threshold": 80,
        "changes": [PROMPT],
        "score": perfect(),
    }
    return GateInput(**{**values, **changed})


@pytest.mark.parametrize(
    ("level", "changes", "passed", "would_pass_at"),
    [
        ("L0", [PROMPT], False, "L2"),
        ("L1", [PROMPT], False, "L2"),
        ("L2", [PROMPT], True, "L2"),
        ("L3", [PROMPT], True, "L2"),
        ("L2", [PROMPT, CAPABILITY], False, "L3"),
        ("L3", [CAPABILITY], True, "L3"),
        ("L3", [PROMPT, MANUAL], False, ""),
        ("L9", [PROMPT], False, "L2"),
    ],
)
def test_levels(level: str, changes: list[Change], passed: bool, would_pass_at: str) -> None:
    verdict = decide(given(level=level, changes=changes))
    assert (verdict.passed, verdict.would_pass_at) == (passed, would_pass_at)


def test_a_verdict_below_its_level_says_what_a_higher_one_would_have_done() -> None:
    verdict = decide(given(level="L0"))
    assert verdict.reason == "level"
    assert "would have passed at L2" in verdict.words


def test_a_bad_score_would_not_have_passed_at_any_level() -> None:
    verdict = decide(given(level="L0", score=summarise([score(confidence="low")])))
    assert (verdict.reason, verdict.would_pass_at) == ("level", "")
    assert "would have passed" not in verdict.words


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"source_access": "workspace"}, "source_access"),
        ({"source_access": ""}, "source_access"),
        ({"source_access": "webhook"}, "source_webhook"),
        ({"changes": []}, "no_effective_change"),
        ({"changes": [PROMPT, MANUAL]}, "category_manual:USER.md(the profile of a person)"),
        ({"changes": [CAPABILITY]}, "level"),
        ({"score": None}, "score_missing"),
        ({"threshold": 101}, "below_threshold"),
        ({"score": summarise([score(confidence="medium")])}, "confidence"),
        ({"score": summarise([score(behavior=69)])}, "behavior_floor"),
        ({"score": summarise([score(lint=99)])}, "lint_floor"),
        ({"score": summarise([score(checks={"patchInSandbox": "fail"})])}, "checks:patchInSandbox"),
        ({"score": summarise([score(checks={"usedInDryRun": "unclear"})])}, "checks:usedInDryRun"),
        ({"score": summarise([score(checks={"probe": "soft"})])}, "checks:probe"),
        ({"score": summarise([score(checks={"probeLanguage": "different"})])}, "checks:probeLanguage"),
        ({"control_failure": "The agent did not answer."}, "control_missing"),
    ],
)
def test_the_first_gate_that_fails_is_the_reason(changed: dict[str, Any], reason: str) -> None:
    verdict = decide(given(**changed))
    assert not verdict.passed
    assert verdict.reason == reason
    assert verdict.words


def test_the_order_is_source_category_score() -> None:
    everything = {"source_access": "readonly", "changes": [MANUAL], "score": None}
    assert decide(given(**everything)).reason == "source_access"
    assert decide(given(**everything | {"source_access": "full"})).reason.startswith("category_manual")
    assert decide(given(score=None)).reason == "score_missing"


def test_edges_of_the_figures_pass() -> None:
    edge = summarise([score(lint=100, behavior=70, scope=70)])
    assert decide(given(threshold=80, score=edge)).passed
    assert not decide(given(threshold=80, score=summarise([score(behavior=70, scope=69)]))).passed


def test_gates_take_the_lowest_of_several_askings() -> None:
    summary = summarise([score(), score(), score(behavior=60, confidence="medium")])
    assert summary.shown.behavior == 100
    assert decide(given(score=summary)).reason == "confidence"
    assert decide(given(score=summarise([score(), score(), score(behavior=60)]))).reason == "behavior_floor"
