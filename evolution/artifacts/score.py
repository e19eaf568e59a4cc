"""``score.<k>.json`` as a scorer writes it, and ``score.json``: what all askings together say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, median_low
from typing import Any

from core import atomic
from core.texts import encodable

NUMBERS = ("lint", "behavior", "scope")
CONFIDENCE = ("high", "medium", "low")
"""Best word first; so are the words of each check."""
CHECKS: dict[str, tuple[str, ...]] = {
    "patchInSandbox": ("pass", "fail"),
    "usedInDryRun": ("yes", "unclear", "no"),
    "probe": ("valid", "soft", "invalid"),
    "probeLanguage": ("same", "different"),
}
UNMOVED_BEHAVIOR_CAP = 50
MAX_SCORE_BYTES = 262_144


class ScoreInvalid(ValueError):
    """The file is missing, malformed, or says something no scorer may say; the text says what."""


@dataclass(frozen=True, slots=True)
class Score:
    """One asking. The figures are whole numbers from 0 to 100; 50 is neutral."""

    lint: int
    behavior: int
    scope: int
    confidence: str
    checks: dict[str, str]
    notes: str = ""

    @property
    def avg(self) -> float:
        """Never taken from the scorer, never rounded."""
        return (self.lint + self.behavior + self.scope) / 3

    def capped(self) -> Score:
        """The same with ``behavior`` held at 50: the control run answered just as the dry run did."""
        return replace(self, behavior=min(self.behavior, UNMOVED_BEHAVIOR_CAP))


@dataclass(frozen=True, slots=True)
class Figures:
    """What a gate or a page reads off one or more scores."""

    lint: int
    behavior: int
    scope: int
    avg: float
    confidence: str
    checks: dict[str, str]


@dataclass(frozen=True, slots=True)
class ScoreSummary:
    """``shown`` is for the row (medians, worst words), ``lowest`` for the gates (lowest of everything).

    ``spread`` is the distance between the highest and the lowest average. ``capped``: the control answered
    as the dry run did, so ``behavior`` was held at 50 in every sample before the average.
    """

    samples: tuple[Score, ...]
    shown: Figures
    lowest: Figures
    spread: float
    capped: bool


def summarise(samples: Sequence[Score], *, capped: bool = False) -> ScoreSummary:
    """``samples`` are as the scorers wrote them; the cap is applied here."""
    scores = tuple(score.capped() for score in samples) if capped else tuple(samples)
    averages = [score.avg for score in scores]
    words = _worst(CONFIDENCE, [score.confidence for score in scores])
    checks = {name: _worst(order, [score.checks[name] for score in scores]) for name, order in CHECKS.items()}
    medians = {name: median_low([getattr(score, name) for score in scores]) for name in NUMBERS}
    lowest = {name: min(getattr(score, name) for score in scores) for name in NUMBERS}
    return ScoreSummary(
        samples=scores,
        shown=Figures(**medians, avg=median(averages), confidence=words, checks=checks),
        lowest=Figures(**lowest, avg=min(averages), confidence=words, checks=checks),
        spread=max(averages) - min(averages),
        capped=capped,
    )


def _worst(order: tuple[str, ...], words: Sequence[str]) -> str:
    return max(words, key=order.index)


def parse_score(data: bytes) -> Score:
    """Strict: ScoreInvalid names the field, what stands there and what may."""
    if len(data) > MAX_SCORE_BYTES:
        raise ScoreInvalid(f"the score is {len(data):,} bytes long; at most {MAX_SCORE_BYTES:,} are read")
    try:
        value = json.loads(data, parse_constant=_no_constant, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ScoreInvalid(f"the score is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ScoreInvalid("the score is not a JSON object")
    return Score(
        **{name: _figure(value, name) for name in NUMBERS},
        confidence=_word(value, "confidence", CONFIDENCE),
        checks=_checks(value),
        notes=_notes(value),
    )


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values a scorer meant can't be told; taking the last one would be a guess."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name is given twice in one object")
    return value


def _figure(value: dict[str, Any], name: str) -> int:
    found = value.get(name)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 100:
        raise ScoreInvalid(f"{name} is {_shown(found)}; a whole number from 0 to 100 is wanted")
    return found


def _word(value: dict[str, Any], name: str, known: tuple[str, ...]) -> str:
    found = value.get(name)
    if not isinstance(found, str) or found not in known:
        raise ScoreInvalid(f"{name} is {_shown(found)}; one of {', '.join(known)} is wanted")
    return found


def _checks(value: dict[str, Any]) -> dict[str, str]:
    checks = value.get("checks")
    if not isinstance(checks, dict):
        raise ScoreInvalid(f"checks is {_shown(checks)}; an object with {', '.join(CHECKS)} is wanted")
    return {name: _word(checks, name, known) for name, known in CHECKS.items()}


def _notes(value: dict[str, Any]) -> str:
    notes = value.get("notes", "")
    if not isinstance(notes, str):
        raise ScoreInvalid(f"notes is {_shown(notes)}; text is wanted")
    return encodable(notes)


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:80]


def read_score(path: Path) -> Score:
    try:
        with path.open("rb") as stream:
            return parse_score(stream.read(MAX_SCORE_BYTES + 1))
    except OSError as error:
        raise ScoreInvalid(f"{path.name} was not written") from error


def write_summary(path: Path, summary: ScoreSummary) -> None:
    atomic.write_json(path, asdict(summary))


def read_summary(path: Path) -> ScoreSummary:
    """Raises OSError, or ScoreInvalid for a file that ``write_summary`` did not write."""
    try:
        value = json.loads(path.read_bytes())
        samples = tuple(Score(**item) for item in value["samples"])
        return ScoreSummary(
            samples=samples,
            shown=Figures(**value["shown"]),
            lowest=Figures(**value["lowest"]),
            spread=value["spread"],
            capped=value["capped"],
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ScoreInvalid(f"{path.name} can't be read ({error!r})") from error
