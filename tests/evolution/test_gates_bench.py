"""The simulation of the gates says what docs/evolution.md prints, and what it must say whatever the seed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from bench import gates

DOCS = Path(__file__).resolve().parents[2] / "docs" / "evolution.md"


def test_the_tables_of_the_docs_are_those_of_the_simulation() -> None:
    text = DOCS.read_text()
    shown = text.split("<!-- simulated: begin -->")[1].split("<!-- simulated: end -->")[0]
    assert shown.strip() == gates.tables()


@pytest.mark.parametrize("scorer", gates.SCORERS, ids=lambda scorer: scorer.name)
def test_more_askings_and_a_higher_threshold_never_let_more_bad_ones_through(scorer: gates.Scorer) -> None:
    def bad(threshold: int, samples: int) -> float:
        return gates.rates(scorer, level="L3", threshold=threshold, samples=samples).bad_let_through

    for threshold in gates.THRESHOLDS:
        figures = [bad(threshold, samples) for samples in gates.SAMPLES]
        assert all(more <= fewer for fewer, more in pairwise(figures))
    for samples in gates.SAMPLES:
        figures = [bad(threshold, samples) for threshold in gates.THRESHOLDS]
        assert all(higher <= lower for lower, higher in pairwise(figures))


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_below_l2_nothing_lands(level: str) -> None:
    found = gates.rates(gates.USUAL, level=level, threshold=0, samples=1)
    assert (found.bad_let_through, found.good_held_back) == (0.0, 100.0)
