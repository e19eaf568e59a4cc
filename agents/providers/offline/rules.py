"""The six forms of plain rules that the engine obeys, finds in a text, and measures in an answer.

| form | reads |
|---|---|
| length | Answer in at most two sentences. / Keep answers under 40 words. |
| units | Give measures in metric units. / Write prices with the currency code. |
| opening | Begin every answer with "Hello". / Begin every answer with the total. |
| shape | Answer in prose, without lists. / Answer as a bulleted list. |
| always | Always mention the order number. |
| never | Never mention the warehouse. |
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Form = Literal["length", "units", "opening", "shape", "always", "never"]

_NUMBERS = {
    word: number
    for number, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 1
    )
} | {"a single": 1}
_NAMES = {number: word for word, number in _NUMBERS.items() if word != "a single"}
_N = rf"(\d{{1,3}}|{'|'.join(_NUMBERS)})"
_ANSWER = r"(?:answers?|repl(?:y|ies)|responses?|messages?)"
_QUOTED = r"[\"“”'`«]([^\"“”`«»\n]{1,80})[\"“”'`»]"
_TERM = r"((?:the |an? |our )?[^.,;:!?\n\"“”`]{2,60})"

_AT_MOST = re.compile(
    rf"\b(at most|no more than|not more than|max(?:imum)?(?: of)?|up to|within|under|fewer than|less than)"
    rf"\s+{_N}\s+(?:\w+\s+)?(sentence|word)s?\b",
    re.IGNORECASE,
)
_IN_N = re.compile(rf"\bin\s+{_N}\s+(?:short\s+)?(sentence)s?\b", re.IGNORECASE)
_METRIC = re.compile(r"\b(?:in|use|with)\s+(?:the\s+)?(metric|imperial)\b", re.IGNORECASE)
_CURRENCY = re.compile(r"\bcurrency (code|sign|symbol)\b", re.IGNORECASE)
_OPENING = re.compile(
    rf"\b(?:begin|start|open|lead)\s+(?:(?:every|each|all|your|the)\s+)*(?:{_ANSWER}\s+)?with\s+"
    rf"(?:the words?\s+)?(?:{_QUOTED}|the\s+([\w][\w -]{{1,40}}))",
    re.IGNORECASE,
)
_PROSE = re.compile(
    r"\b(?:in (?:plain )?prose|as prose|(?:no|without|avoid|not use|never use) (?:any )?(?:bullet(?:ed)? )?"
    r"(?:lists?|bullets|bullet points))\b",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:as|use|in) (?:a |an )?(?:short )?(?:bullet(?:ed)? list|bullet points|bullets|list)\b",
    re.IGNORECASE,
)
_ALWAYS = re.compile(rf"\b(?:always|must) (?:mention|name|say) (?:{_QUOTED}|{_TERM})", re.IGNORECASE)
_NEVER = re.compile(
    rf"\b(?:never|don['\u2019]t|do not|must not) mention (?:{_QUOTED}|{_TERM})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Rule:
    """``value`` by form: "2 sentences"; "metric", "currency code"; a literal or "the total"; "list"; a term."""

    form: Form
    value: str

    @property
    def sentence(self) -> str:
        """The rule as it is written into a prompt file; ``find`` reads it back."""
        if self.form == "length":
            count, unit = self.value.split()
            number = _NAMES.get(int(count), count)
            return f"Answer in at most {number} {unit if int(count) != 1 else unit.rstrip('s')}."
        if self.form == "units":
            return {
                "currency code": "Write amounts of money with the currency code, as in 12.50 EUR.",
                "currency sign": "Write amounts of money with the currency sign, as in €12.50.",
            }.get(self.value, f"Give measures in {self.value} units.")
        if self.form == "opening":
            text = self.value if self.value.startswith("the ") else f'"{self.value}"'
            return f"Begin every answer with {text}."
        if self.form == "shape":
            return (
                "Answer in prose, without lists." if self.value == "prose" else "Answer as a bulleted list."
            )
        return f"{self.form.capitalize()} mention {self.value}."

    @property
    def single(self) -> bool:
        """Two rules of this form can't hold together."""
        return self.form in ("length", "opening", "shape")

    @property
    def count(self) -> int:
        return int(self.value.split()[0])

    def contradicts(self, other: Rule) -> bool:
        if self.form == other.form == "units":
            return self != other and ("currency" in self.value) == ("currency" in other.value)
        if {self.form, other.form} == {"always", "never"}:
            return term(self.value) == term(other.value)
        return self.form == other.form and self.single and self.value != other.value


def term(value: str) -> str:
    """What to look for in an answer: the term without its article, in lower case."""
    return re.sub(r"^(?:the|an?|our) ", "", value.strip().lower())


def find(text: str) -> list[Rule]:
    """Rules in order of appearance, each once."""
    rules: list[Rule] = []
    for line in text.splitlines():
        rules += _in_line(line)
    return list(dict.fromkeys(rules))


def in_force(rules: Iterable[Rule]) -> list[Rule]:
    """Of contradicting rules the later one holds, as the more particular files come later in a prompt."""
    kept: list[Rule] = []
    for rule in rules:
        kept = [other for other in kept if not rule.contradicts(other) and rule != other] + [rule]
    return kept


def _in_line(line: str) -> list[Rule]:
    rules: list[Rule] = []
    if found := _AT_MOST.search(line):
        count = _number(found[2]) - (found[1].lower() in ("under", "fewer than", "less than"))
        rules.append(Rule("length", f"{max(1, count)} {found[3].lower()}s"))
    elif found := _IN_N.search(line):
        rules.append(Rule("length", f"{_number(found[1])} sentences"))
    if found := _METRIC.search(line):
        rules.append(Rule("units", found[1].lower()))
    if found := _CURRENCY.search(line):
        rules.append(Rule("units", f"currency {'code' if found[1].lower() == 'code' else 'sign'}"))
    if found := _OPENING.search(line):
        rules.append(Rule("opening", found[1] or f"the {_clause(found[2])}"))
    if _PROSE.search(line):
        rules.append(Rule("shape", "prose"))
    elif _LIST.search(line):
        rules.append(Rule("shape", "list"))
    for form, pattern in (("always", _ALWAYS), ("never", _NEVER)):
        for match in pattern.finditer(line):
            value = match[1] or _clause(match[2])
            rules.append(Rule("always" if form == "always" else "never", value))
    return rules


def _number(text: str) -> int:
    return _NUMBERS.get(text.lower()) or int(text)


def _clause(text: str) -> str:
    """A term ends where its clause does."""
    return re.split(r"\s+(?:and|but|when|if|in|unless|because|to|first)\b", text.strip())[0].strip(" *_")
