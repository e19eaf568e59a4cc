"""Three gates in order; the verdict at every level."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from evolution.artifacts.score import CHECKS, CONFIDENCE, Score, summarise
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


FIGURES = st.integers(0, 100)
ANY_SCORE = st.builds(
    Score,
    lint=FIGURES,
    behavior=FIGURES,
    scope=FIGURES,
    confidence=st.sampled_from(CONFIDENCE),
    checks=st.fixed_dictionaries({name: st.sampled_from(words) for name, words in CHECKS.items()}),
)


class TestSamples:
    """One asking is noise: the gates take the worst of all."""

    @pytest.mark.parametrize(
        "low",
        [
            score(scope=39),
            score(behavior=69),
            score(lint=99),
            score(confidence="medium"),
            *(score(checks={name: words[-1]}) for name, words in CHECKS.items()),
        ],
    )
    @pytest.mark.parametrize("samples", [1, 3, 9])
    def test_one_low_sample_never_lands_wherever_it_stands(self, low: Score, samples: int) -> None:
        for place in range(samples):
            sequence = [score()] * place + [low] + [score()] * (samples - place - 1)
            assert not decide(given(level="L3", score=summarise(sequence))).passed

    @generated(samples=st.lists(ANY_SCORE, min_size=1, max_size=9), threshold=st.integers(0, 100))
    def test_all_pass_exactly_when_each_would(self, samples: list[Score], threshold: int) -> None:
        each = [decide(given(threshold=threshold, score=summarise([one]))).passed for one in samples]
        assert decide(given(threshold=threshold, score=summarise(samples))).passed == all(each)

    @pytest.mark.parametrize("flaps", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)])
    @pytest.mark.parametrize("samples", range(1, 7))
    def test_a_flapping_scorer_lets_through_at_the_computed_rate(self, flaps: Fraction, samples: int) -> None:
        """It is below the threshold at each asking with the chance ``flaps``: (1 - flaps) ** samples land."""
        words = {True: (score(scope=30), flaps), False: (score(scope=50), 1 - flaps)}
        rate = Fraction(0)
        for sequence in product((True, False), repeat=samples):
            chance = Fraction(1)
            for is_low in sequence:
                chance *= words[is_low][1]
            if decide(given(score=summarise([words[is_low][0] for is_low in sequence]))).passed:
                rate += chance
        assert rate == (1 - flaps) ** samples

    @generated(samples=st.lists(ANY_SCORE, min_size=1, max_size=9))
    def test_an_answer_that_did_not_move_never_lands(self, samples: list[Score]) -> None:
        """The control answered as the dry run did: behavior counts as 50 at most, before the average."""
        summary = summarise(samples, capped=True)
        assert not decide(given(level="L3", threshold=0, score=summary)).passed
        assert summary.shown.behavior <= 50
        assert summary.lowest.avg <= (100 + 50 + 100) / 3
        assert all(one.avg == (one.lint + one.behavior + one.scope) / 3 for one in summary.samples)

    @generated(samples=st.lists(ANY_SCORE, min_size=1, max_size=9), extra=ANY_SCORE)
    def test_one_more_asking_never_opens_a_gate(self, samples: list[Score], extra: Score) -> None:
        before = decide(given(score=summarise(samples))).passed
        assert before or not decide(given(score=summarise([*samples, extra]))).passed


def test_each_gate_says_its_own_word_whatever_the_others_say() -> None:
    verdict = decide(given(source_access="webhook", changes=[MANUAL], score=None))
    assert [(gate.name, gate.passed, gate.reason.split(":")[0]) for gate in verdict.gates] == [
        ("source", False, "source_webhook"),
        ("category", False, "category_manual"),
        ("score", False, "score_missing"),
    ]
    assert all(gate.words for gate in verdict.gates)
    assert verdict.reason == "source_webhook"
