"""What a scorer computes its figures from: the rules a change brings, and the answers with and without it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from agents.providers.offline.obey import fit
from agents.providers.offline.rules import Rule, find
from agents.providers.offline.texts import keywords, word_count


def average_fit(rules: Sequence[Rule], answer: str) -> int:
    return round(sum(fit(rule, answer) for rule in rules) / len(rules)) if rules else 50


@dataclass(frozen=True, slots=True)
class Diff:
    """Of one changed file."""

    rel: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


def diffs(blocks: Sequence[tuple[str, str]]) -> list[Diff]:
    """From the brief's unified diffs, the headers aside."""
    found = []
    for rel, text in blocks:
        lines = [line for line in text.split("\n") if not line.startswith(("+++", "---", "@@"))]
        added = tuple(line[1:].removesuffix("\r") for line in lines if line.startswith("+"))
        removed = tuple(line[1:].removesuffix("\r") for line in lines if line.startswith("-"))
        found.append(Diff(rel, added, removed))
    return found


def behavior(rules: Sequence[Rule], *, before: str, after: str, kept: Sequence[Rule]) -> int:
    """50 when nothing changed; up to 95 as the shortfall closes, down as it grows or other rules break.

    ``before``: the answer without the change, ``after``: with it; ``kept``: the rules that stood already.
    """
    if not after.strip():
        return 0
    if before.split() == after.split():
        return 50
    old, new = average_fit(rules, before), average_fit(rules, after)
    closed = (new - old) / (100 - old) if new >= old and old < 100 else (new - old) / 100
    harm = sum(max(0, fit(rule, before) - fit(rule, after)) for rule in kept) / 4
    return _bounded(50 + 45 * closed - harm - 40 * (1 - _substance(before, after)))


def held(rules: Sequence[Rule], *, approved: str, answer: str) -> int:
    """After a merge: what was approved still holds (50 and more), or how much of it was lost."""
    if not answer.strip():
        return 0
    old, new = average_fit(rules, approved), average_fit(rules, answer)
    lost = max(0, old - new)
    if lost:
        return _bounded(45 - lost / 2)
    return _bounded(50 + 0.45 * new - 20 * (1 - _substance(approved, answer)))


def _substance(before: str, after: str) -> float:
    """1 when every keyword of the later answer was in the earlier one: it may say less, nothing else."""
    said, known = keywords(after), set(keywords(before))
    return sum(stem in known for stem in said) / len(said) if said else 0.0


def lint(files: Sequence[tuple[str, str]], changes: Sequence[Diff], patch: str) -> tuple[int, list[str]]:
    """100 less what is wrong with the changed files as files; and what that is."""
    faults: list[tuple[int, str]] = []
    for rel, text in files:
        faults += _file_faults(rel, text)
    for change in changes:
        if any(line != line.rstrip() or "\t" in line for line in change.added):
            faults.append((5, f"{change.rel}: added lines with tabs or blanks at their end"))
    if not ("## What" in patch and "## Why" in patch):
        faults.append((20, "patch.md lacks What or Why"))
    return max(0, 100 - sum(cost for cost, _ in faults)), [text for _, text in faults]


def _file_faults(rel: str, text: str) -> list[tuple[int, str]]:
    if rel.endswith((".yaml", ".yml")) or text.startswith("---\n"):
        source = text if not text.startswith("---\n") else text[4:].partition("\n---")[0]
        try:
            yaml.safe_load(source)
        except yaml.YAMLError as error:
            return [(100, f"{rel} does not parse: {' '.join(str(error).split())[:120]}")]
    faults: list[tuple[int, str]] = []
    lines = [line.strip() for line in text.splitlines() if len(line.split()) > 2]
    if len(set(lines)) < len(lines):
        faults.append((30, f"{rel} says the same line twice"))
    rules = find(text)
    if any(rule.contradicts(other) for place, rule in enumerate(rules) for other in rules[:place]):
        faults.append((50, f"{rel} holds rules that contradict each other"))
    if text and not text.endswith("\n"):
        faults.append((10, f"{rel} ends without a line break"))
    return faults


def scope(changes: Sequence[Diff], original: str) -> tuple[int, list[str]]:
    """100 for a few general lines in one file; less for many, for more files, for text of this one case."""
    touched = sum(len(change.added) + len(change.removed) for change in changes)
    notes = [f"Changed lines: {touched}, files: {len(changes)}"]
    figure = 100 - 5 * max(0, touched - 4) - 30 * max(0, len(changes) - 1)
    added = " ".join(line for change in changes for line in change.added).lower()
    if _shared_run(added, original.lower()) or _numbers(added) & _numbers(original):
        figure -= 40
        notes.append("the rule repeats words of this one case")
    if word_count(added) > 120:
        figure -= 10
    return (max(0, figure) if changes else 0), notes


def _shared_run(text: str, other: str) -> bool:
    """Five words or more in a row."""
    words = re.findall(r"\w+", text)
    joined = " ".join(re.findall(r"\w+", other))
    return any(" ".join(words[place : place + 5]) in joined for place in range(len(words) - 4))


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d{3,}", text))


def _bounded(figure: float) -> int:
    return max(0, min(100, round(figure)))
