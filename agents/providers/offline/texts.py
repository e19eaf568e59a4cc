"""Sentences, words and keywords: as much of language as a rule engine needs."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"”)]?\s+(?=[\"“(]?[A-ZÄÖÜÉ0-9€$£*`])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|approx|incl|excl|no|nr|vs|z\.B|ca)\.$", re.IGNORECASE)
_LIST_LINE = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP_WORDS = _words(
    """a about after all also am an and any are as at be because been before but by can could did do does
    for from get had has have he her here him his how i if in into is it its just know like me my need
    no not of on or our out please say says she should so some tell than that the their them then there
    these they this to up us want was we were what when where which who why will with would you your
    documentation"""
)
_FUNCTION_WORDS = {
    "en": _words("the and is are how what can i my to of for with do does you which"),
    "de": _words("der die das und ist sind wie was kann ich mein zu von für mit nicht ein eine"),
    "fr": _words("le la les et est sont comment que quel je mon de pour avec pas un une"),
    "es": _words("el la los y es son cómo qué puedo mi de para con no un una"),
}


def list_item(line: str) -> bool:
    return bool(_LIST_LINE.match(line))


def without_marker(line: str) -> str:
    return _LIST_LINE.sub("", line).strip()


def sentences(text: str) -> list[str]:
    """Sentences in order; a list item, a heading or a table row is one of its own."""
    found: list[str] = []
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        own = list_item(line) or line.startswith(("#", "|"))
        if own or not line.strip():
            found += _split(" ".join(paragraph))
            paragraph = []
        if own:
            found += _split(without_marker(line).lstrip("# "))
        elif line.strip():
            paragraph.append(line.strip())
    return found


def _split(paragraph: str) -> list[str]:
    pieces: list[str] = []
    for piece in _SENTENCE_END.split(paragraph.strip()):
        if pieces and _ABBREVIATION.search(pieces[-1]):
            pieces[-1] += f" {piece}"
        elif piece.strip():
            pieces.append(piece.strip())
    return pieces


def word_count(text: str) -> int:
    return len(re.findall(r"\S+", text))


def stem(word: str) -> str:
    """Cuts the endings that most often stand between a question's word and the document's."""
    for ending in ("ing", "ies", "es", "ed", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def keywords(text: str) -> list[str]:
    """Stems in order of appearance, each once, without function words."""
    words = re.findall(r"[^\W_]+", text.lower())
    return list(dict.fromkeys(stem(word) for word in words if word not in _STOP_WORDS and len(word) > 1))


def language(text: str) -> str:
    """A guess from function words; texts without any are told apart by script alone."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    hits = {name: sum(word in known for word in words) for name, known in _FUNCTION_WORDS.items()}
    best = max(hits, key=lambda name: hits[name])
    if hits[best]:
        return best
    latin = sum(word.isascii() for word in words)
    return "latin" if latin * 2 >= len(words) else "other"
