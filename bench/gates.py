"""How often the gates let a bad draft through and hold a good one back: drafters and scorers of known quality.

The drafts and their scores are made up, with fixed seeds; what judges them is the real code: ``summarise`` for
the askings, ``decide`` for the gates. ``python -m bench.gates`` prints the tables of docs/evolution.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from bench.measures import Measure
from evolution.artifacts.score import CHECKS, Score, summarise
from evolution.changes import Category, Change
from evolution.gates import GateInput, decide

SEED = 20_261_129
DRAFTS = 2_000
LEVELS = ("L2", "L3")
THRESHOLDS = (80, 85, 90)
SAMPLES = (1, 3, 5)
DEFAULT_THRESHOLD, DEFAULT_SAMPLES = 80, 3

CATEGORIES = ((Category.PROMPT, 0.75), (Category.CAPABILITY, 0.15), (Category.MANUAL, 0.10))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of draft as it truly is. ``sure``: how often the scorer is highly confident and a check is good."""

    name: str
    is_bad: bool
    share: float
    lint: float
    behavior: float
    scope: float
    sure: float
    unmoved: float = 0.0


KINDS = (
    Kind("good", False, 0.70, lint=100, behavior=90, scope=88, sure=0.99),
    Kind("worse", True, 0.10, lint=95, behavior=45, scope=70, sure=0.90),
    Kind("without effect", True, 0.10, lint=100, behavior=60, scope=80, sure=0.90, unmoved=0.6),
    Kind("plausible and bad", True, 0.10, lint=100, behavior=76, scope=78, sure=0.95),
)
"""Three drafts in ten are bad. ``unmoved``: how often the control answers as the dry run does."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """``noise``: the standard deviation of a figure between askings. ``taken_in``: points given to a bad draft."""

    name: str
    noise: float
    taken_in: float = 0.0


SCORERS = (
    Scorer("steady", 3),
    Scorer("usual", 7),
    Scorer("noisy", 14),
    Scorer("taken in", 7, taken_in=10),
)
USUAL = SCORERS[1]


@dataclass(frozen=True, slots=True)
class Drafted:
    """``askings``: as many as any number of samples takes, the first ones counting."""

    is_bad: bool
    category: Category
    unmoved: bool
    askings: tuple[Score, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """In per cent: of all bad drafts those that landed by themselves, of all good ones those that waited."""

    bad_let_through: float
    good_held_back: float


@cache
def drafts(scorer: Scorer) -> tuple[Drafted, ...]:
    """The same drafts for every scorer, so that tables differ by what they name alone."""
    kinds, noise = _chance("drafts"), _chance(scorer.name)
    return tuple(_draft(kinds, noise, scorer) for _ in range(DRAFTS))


def _chance(name: str) -> random.Random:
    return random.Random(f"{SEED} {name}")  # noqa: S311 - a simulation that has to come out the same


def _draft(kinds: random.Random, noise: random.Random, scorer: Scorer) -> Drafted:
    kind = kinds.choices(KINDS, [kind.share for kind in KINDS])[0]
    category = kinds.choices([name for name, _ in CATEGORIES], [share for _, share in CATEGORIES])[0]
    unmoved = kinds.random() < kind.unmoved
    askings = tuple(_asked(noise, kind, scorer) for _ in range(max(SAMPLES)))
    return Drafted(kind.is_bad, category, unmoved, askings)


def _asked(noise: random.Random, kind: Kind, scorer: Scorer) -> Score:
    """Lint is counted, not felt: its noise is a slip now and then, at the other figures' rate of error."""
    shift = scorer.taken_in if kind.is_bad else 0.0
    slips = noise.random() < scorer.noise / 400

    def figure(truth: float) -> int:
        return round(min(100.0, max(0.0, noise.gauss(truth + shift, scorer.noise))))

    return Score(
        lint=90 if slips else round(kind.lint),
        behavior=figure(kind.behavior),
        scope=figure(kind.scope),
        confidence="high" if noise.random() < kind.sure else "medium",
        checks={name: words[0] if noise.random() < kind.sure else words[1] for name, words in CHECKS.items()},
    )


def lands(draft: Drafted, *, level: str, threshold: int, samples: int) -> bool:
    verdict = decide(
        GateInput(
            source_access="full",
            level=level,
            threshold=threshold,
            changes=(Change("file", draft.category, "drafted"),),
            score=summarise(draft.askings[:samples], capped=draft.unmoved),
        )
    )
    return verdict.passed


@cache
def rates(scorer: Scorer, *, level: str, threshold: int, samples: int) -> Rates:
    landed = [
        (draft.is_bad, lands(draft, level=level, threshold=threshold, samples=samples))
        for draft in drafts(scorer)
    ]
    bad = [landed for is_bad, landed in landed if is_bad]
    good = [landed for is_bad, landed in landed if not is_bad]
    return Rates(100 * sum(bad) / len(bad), 100 * (len(good) - sum(good)) / len(good))


def measure() -> list[Measure]:
    found = []
    for level, samples in product(LEVELS, SAMPLES):
        found.append(_measure(USUAL, level=level, samples=samples))
    for scorer in SCORERS:
        if scorer is not USUAL:
            found.append(_measure(scorer, level="L2", samples=DEFAULT_SAMPLES))
    return found


def _measure(scorer: Scorer, *, level: str, samples: int) -> Measure:
    found = rates(scorer, level=level, threshold=DEFAULT_THRESHOLD, samples=samples)
    return Measure(
        what=f"gates at {level}, threshold {DEFAULT_THRESHOLD}, {samples} asked, {scorer.name} scorer (simulated)",
        unit="%",
        figures={"bad let through": found.bad_let_through, "good held back": found.good_held_back},
    )


def tables() -> str:
    """As they stand in docs/evolution.md."""
    return "\n".join([*_by_policy(), "", *_by_scorer()])


def _by_policy() -> Iterator[str]:
    """The usual scorer; L0 and L1 let nothing through."""
    yield from _head("level", "threshold", "askings")
    yield _row("L0, L1", "any", "any", Rates(0.0, 100.0))
    for level, threshold, samples in product(LEVELS, THRESHOLDS, SAMPLES):
        found = rates(USUAL, level=level, threshold=threshold, samples=samples)
        yield _row(level, str(threshold), str(samples), found)


def _by_scorer() -> Iterator[str]:
    yield from _head("scorer", "noise", "askings")
    for scorer, samples in product(SCORERS, SAMPLES):
        found = rates(scorer, level="L2", threshold=DEFAULT_THRESHOLD, samples=samples)
        yield _row(scorer.name, f"± {scorer.noise:g}", str(samples), found)


def _head(*names: str) -> Sequence[str]:
    return (f"| {' | '.join(names)} | bad let through | good held back |", "|---|---|---|---|---|")


def _row(first: str, second: str, third: str, found: Rates) -> str:
    return f"| {first} | {second} | {third} | {found.bad_let_through:.1f} % | {found.good_held_back:.1f} % |"


if __name__ == "__main__":
    print(tables())
