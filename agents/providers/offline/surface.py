"""Where a rule goes in a prompt file."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from agents.providers.offline import files
from agents.providers.offline.rules import Rule, find
from agents.providers.offline.texts import list_item

RULES_HEADING = "## Rules"


def is_locked(rel: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(rel, pattern) or rel.startswith(f"{pattern.rstrip('/')}/") for pattern in patterns
    )


def with_rule(content: str, sentence: str, rules: Sequence[Rule], *, after: str = "") -> str | None:
    """The file with the rule in it; None when it stands there already.

    A line that says the opposite and nothing else is replaced; else the rule goes below the line ``after``, or
    to the end of the list under a heading that speaks of rules, or under a new one.
    """
    lines = files.lines_of(content.rstrip())
    if any(line.lstrip("-* ").strip() == sentence for line in lines):
        return None
    there = find(content)
    if rules and all(rule in there for rule in rules):
        return None
    for place, line in enumerate(lines):
        held = find(line)
        if len(held) == 1 and any(rule.contradicts(held[0]) for rule in rules):
            lines[place] = f"- {sentence}" if list_item(line) else sentence
            return files.joined(lines, like=content)
    if after and after in lines:
        place = lines.index(after) + 1
        lines.insert(place, f"- {sentence}" if list_item(after) else f"\n{sentence}")
        return files.joined(lines, like=content)
    return files.joined(_appended(lines, sentence), like=content)


def _appended(lines: list[str], sentence: str) -> list[str]:
    heading = next(
        (place for place, line in enumerate(lines) if line.startswith("#") and "rule" in line.lower()), None
    )
    if heading is None:
        return [*lines, *([""] if lines else []), RULES_HEADING, "", f"- {sentence}"]
    end = next(
        (place for place in range(heading + 1, len(lines)) if lines[place].startswith("#")), len(lines)
    )
    while end > heading + 1 and not lines[end - 1].strip():
        end -= 1
    gap = [] if end > heading + 1 and (list_item(lines[end - 1]) or lines[end - 1].startswith("  ")) else [""]
    return [*lines[:end], *gap, f"- {sentence}", *lines[end:]]
