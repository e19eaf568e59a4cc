"""The chat agent: finds the passage in ``.halo/docs`` that a question is about, answers under the rules."""

from __future__ import annotations

import re

from agents.providers.offline import NAME, files, obey, retrieve
from agents.providers.offline.rules import Rule, find
from agents.providers.offline.steps import Call, Task
from agents.providers.offline.texts import keywords

HALO = ".halo"
_PLACE = re.compile(r"^Workspace: (/.*)$", re.MULTILINE)
_MOST_POINTS = 12
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|day|evening)|who are you|what are you)\b", re.IGNORECASE
)
_LEAD = "Thank you for asking; here is what the documentation has on this, from the beginning."


def answer(question: str, system_prompt: str) -> Task:
    rules = find(system_prompt)
    asked = keywords(question)
    if _GREETING.match(question) and len(asked) < 4:
        return _said(_introduction(), rules)
    place = _PLACE.search(system_prompt)
    halo = f"{place[1]}/{HALO}" if place else HALO
    docs = f"{halo}/docs"
    listing, found = yield (
        Call("glob", {"pattern": "**/*.md", "path": docs}),
        Call("grep", {"pattern": _pattern(asked), "path": docs, "ignore_case": True}),
    )
    hits = files.hits(found, docs, files.found(listing, docs, suffix=".md"))
    best = sorted(hits, key=lambda name: (-_matched(asked, hits[name]), name))[:4]
    texts = yield from files.first_pages(best)
    candidates = [
        item for path, text in zip(best, texts, strict=True) for item in retrieve.passages(path, text)
    ]
    if not candidates:
        text = yield from files.read(f"{halo}/INDEX.md")
        candidates = retrieve.passages("INDEX.md", text or "")
    chosen = retrieve.best_passages(question, candidates)
    if not chosen:
        return _said(_nothing(), rules)
    points, ranks = retrieve.rank_sentences(question, chosen)
    points, ranks = [_LEAD, *points], [*(index + 1 for index in ranks[:_MOST_POINTS]), 0]
    source = ", ".join(
        dict.fromkeys(path.rpartition("docs/")[2] for path in (item.path for item in chosen[:1]))
    )
    return f"{obey.write(points, ranks, rules)} [{source}]"


def _introduction() -> list[str]:
    return [
        f"I am Halo's offline engine: an {NAME}.",
        f"Ask me something that this workspace's documents in {HALO}/docs answer.",
    ]


def _nothing() -> list[str]:
    return [
        f"I find nothing about that in {HALO}/docs.",
        f"I am an {NAME}: I only repeat what the documents say, under the rules of my prompt.",
    ]


def _said(points: list[str], rules: list[Rule]) -> str:
    return obey.write(points, range(len(points)), rules)


def _pattern(asked: list[str]) -> str:
    return "|".join(map(re.escape, asked)) or "$^"


def _matched(asked: list[str], lines: list[str]) -> int:
    text = "\n".join(lines).lower()
    return sum(stem in text for stem in asked)
