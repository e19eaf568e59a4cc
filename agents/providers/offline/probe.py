"""The test message: not the original one, and one whose answer would go against the new rule without it."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from agents.providers.offline import files, obey, retrieve
from agents.providers.offline.rules import Rule
from agents.providers.offline.steps import Call, Result
from agents.providers.offline.texts import keywords, language, sentences

_QUESTIONS = {
    "en": "What should I know about {topic}?",
    "de": "Was sollte ich über {topic} wissen?",
    "fr": "Que faut-il savoir sur {topic} ?",
    "es": "¿Qué debo saber sobre {topic}?",
}
_MOST_FILES = 6

Probing = Generator[tuple[Call, ...], tuple[Result, ...], str]


def message(original: str, said: Sequence[str], rules: Sequence[Rule], docs: str) -> Probing:
    """A question in the original's language about the passage that the rules would change most."""
    (listing,) = yield (Call("glob", {"pattern": "**/*.md", "path": docs}),)
    paths = files.found(listing, docs, suffix=".md")[:_MOST_FILES]
    texts = yield from files.first_pages(paths)
    candidates = [
        item
        for path, text in zip(paths, texts, strict=True)
        for item in retrieve.passages(path, text)
        if item.heading
    ]
    asked = set(keywords(original))
    fresh = [item for item in candidates if not asked & set(keywords(item.title))] or candidates
    if not fresh:
        return _another(original, said)
    chosen = max(fresh, key=lambda item: (_effect(rules, item.body), len(item.body)))
    return _QUESTIONS.get(language(original), _QUESTIONS["en"]).format(topic=chosen.topic)


def _effect(rules: Sequence[Rule], body: str) -> int:
    """How much better an answer from this passage keeps the rules when it is written under them."""
    points = sentences(body)
    under = obey.write(points, range(len(points)), rules)
    return sum(obey.fit(rule, under) - obey.fit(rule, body) for rule in rules)


def _another(original: str, said: Sequence[str]) -> str:
    """Without documents: another message of the conversation, else the original put differently."""
    tongue = language(original)
    others = [text for text in said if text.split() != original.split() and language(text) == tongue]
    return max(others, key=len) if others else f"{original.rstrip()} (…)"
