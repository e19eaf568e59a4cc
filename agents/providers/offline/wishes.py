"""What a hint asks for, as rules; and which of an agent's own vague rules an answer went against."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.providers.offline.rules import Rule, find

_TOO_LONG = re.compile(
    r"\b(?:too (?:long|verbose|wordy|much text)|verbose|wordy|shorter|briefer|more concise|rambl\w+)\b",
    re.I,
)
_VAGUE = re.compile(r"\b(?:short|brief|concise|to the point|few words)\b", re.I)
_LISTS = re.compile(r"\b(?:hate|dislike|too many|avoid|no more) (?:bullet(?:s| points)|lists)\b", re.I)
_WANTS_LIST = re.compile(
    r"\b(?:want|prefer|need|should be|give me) (?:it )?(?:a |as a )?(?:bullet(?:s| points|ed list)|list)\b",
    re.I,
)
_METRIC = re.compile(r"\b(?:millimet(?:re|er)s|mm|centimet(?:re|er)s|kilos?|kilograms?|kg|metric)\b", re.I)
_FIRST = re.compile(
    r"\b(?:put|give|say|state|lead with|buries|buried|hides?) (?:me )?"
    r"(the [\w-]+(?: [\w-]+)?)(?= first|[.,;!]|$)",
    re.I,
)
_MISSING = re.compile(
    r"\b(?:forgot|didn't mention|did not mention|left out|missing|(?:please|also|should) mention) (?:to mention )?"
    r"((?:the |our )?[\w' -]{2,40}?)(?= next time|[.,;!]|$)",
    re.I,
)
_UNWANTED = re.compile(
    r"\b(?:stop mentioning|shouldn't mention|should not mention|no need to mention) "
    r"((?:the |our )?[\w -]{2,40})",
    re.I,
)


def rules_of_hint(hint: str) -> list[Rule]:
    """The rules a hint states, else those its complaint amounts to."""
    if stated := find(hint):
        return stated
    wished: list[Rule] = []
    if _TOO_LONG.search(hint):
        wished.append(Rule("length", "2 sentences"))
    if found := _FIRST.search(hint):
        wished.append(Rule("opening", found[1].lower()))
    if _LISTS.search(hint):
        wished.append(Rule("shape", "prose"))
    elif _WANTS_LIST.search(hint):
        wished.append(Rule("shape", "list"))
    if _METRIC.search(hint):
        wished.append(Rule("units", "metric"))
    if found := _MISSING.search(hint):
        wished.append(Rule("always", found[1].strip()))
    if found := _UNWANTED.search(hint):
        wished.append(Rule("never", found[1].strip()))
    return wished


def as_sentence(hint: str) -> str:
    """A hint in none of the known forms, put as one line of a prompt file."""
    text = " ".join(hint.split()).strip(" -*")
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def vague_line(prompt: str) -> str:
    """The first line that wants short answers without saying how short; empty when there is none."""
    for line in prompt.splitlines():
        if (
            _VAGUE.search(line)
            and not line.startswith("#")
            and not any(rule.form == "length" for rule in find(line))
        ):
            return line
    return ""


def sharpened(answers: Sequence[int]) -> Rule | None:
    """The length rule that answers of these sentence counts went against; None when all were short."""
    return Rule("length", "3 sentences") if answers and max(answers) > 4 else None
