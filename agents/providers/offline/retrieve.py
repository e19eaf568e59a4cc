"""Passages of Markdown documents, and which of them a question is about."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.providers.offline import units
from agents.providers.offline.texts import keywords, sentences

_PRICE = re.compile(r"\b(?:how much|costs?|prices?|pay|fee|charge)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """The text under one heading; ``document`` is the title of the file it stands in."""

    path: str
    document: str
    heading: str
    body: str

    @property
    def title(self) -> str:
        return f"{self.document} {self.heading}".strip()

    @property
    def topic(self) -> str:
        """For a question about it, within a sentence."""
        return ": ".join(text[:1].lower() + text[1:] for text in (self.document, self.heading) if text)

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(keywords(f"{self.title} {self.body}"))


def passages(path: str, document: str) -> list[Passage]:
    found: list[Passage] = []
    top, title, body = "", "", list[str]()
    for line in [*document.splitlines(), "# "]:
        if not line.startswith("#"):
            body.append(line)
            continue
        if "\n".join(body).strip():
            found.append(Passage(path, top, title, "\n".join(body).strip()))
        body = []
        text = line.lstrip("# ").strip()
        top, title = (text, "") if line.startswith("# ") else (top, text)
    return found


def best_passages(question: str, candidates: Sequence[Passage]) -> list[Passage]:
    """At most two, the best first; none when no word of the question occurs."""
    asked = keywords(question)
    weights = _weights(candidates)
    scored = [(_passage_score(asked, passage, weights), -place) for place, passage in enumerate(candidates)]
    ranked = sorted((score for score in scored if score[0] > 0), reverse=True)[:2]
    return [candidates[-place] for score, place in ranked if score >= 0.6 * ranked[0][0]]


def rank_sentences(question: str, chosen: Sequence[Passage]) -> tuple[list[str], list[int]]:
    """The sentences in reading order, and their indices with the most to the point first."""
    asked = keywords(question)
    wants_price = bool(_PRICE.search(question))
    weights = _weights(chosen)
    points: list[str] = []
    scores: list[tuple[float, int]] = []
    for place, passage in enumerate(chosen):
        for sentence in sentences(passage.body):
            stems = set(keywords(sentence))
            score = sum(weights.get(stem, 1.0) for stem in asked if stem in stems)
            score += 1.5 if wants_price and units.amounts(sentence) else 0
            scores.append((score - 0.5 * place, -len(points)))
            points.append(sentence)
    return points, [-index for _, index in sorted(scores, reverse=True)]


def _passage_score(asked: Sequence[str], passage: Passage, weights: dict[str, float]) -> float:
    title = set(keywords(passage.title))
    return sum(weights[stem] * (2 if stem in title else 1) for stem in asked if stem in passage.stems)


def _weights(candidates: Sequence[Passage]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for passage in candidates:
        for stem in passage.stems:
            counts[stem] = counts.get(stem, 0) + 1
    return {stem: 1 + math.log(len(candidates) / count) for stem, count in counts.items()}
