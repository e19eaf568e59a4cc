"""Follows a score or regress brief: reads the texts, computes the figures, writes ``score.json``."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

from agents.providers.offline import NAME, evidence, files
from agents.providers.offline.brief import Brief
from agents.providers.offline.drafter import rules_of_patch
from agents.providers.offline.merger import rules_left
from agents.providers.offline.rules import Rule, find, in_force
from agents.providers.offline.steps import Call, Result, Task
from agents.providers.offline.texts import language

Texts = Generator[tuple[Call, ...], tuple[Result, ...], dict[str, str]]


def score(brief: Brief) -> Task:
    """The change against the same question without it (``Control``), or else against the real answer."""
    texts = yield from _texts(brief, ("Patch", "Baseline", "Control", "Dry run"))
    changes = evidence.diffs(brief.section("Changed files").blocks)
    rules = _rules(texts["Patch"], changes)
    base, changed = yield from _changed_files(brief, changes)
    before = texts["Control"] or texts["Baseline"]
    scenario = brief.section("Scenario")
    test, original = scenario.block("testMessage"), scenario.block("originalMessage")
    lint, faults = evidence.lint(changed, changes, texts["Patch"])
    scope, notes = evidence.scope(changes, original)
    kept = [rule for rule in in_force(find(base)) if not any(rule.contradicts(other) for other in rules)]
    figures = {
        "lint": lint,
        "behavior": evidence.behavior(rules, before=before, after=texts["Dry run"], kept=kept),
        "scope": scope,
    }
    checks = {
        "patchInSandbox": "pass" if _in_sandbox(changes, changed) else "fail",
        "usedInDryRun": _used(rules, before, texts["Dry run"]),
        "probe": _probe(rules, test, original, before),
        "probeLanguage": "same" if language(test) == language(original) else "different",
    }
    confidence = "low" if not rules or not texts["Dry run"] else "high" if texts["Control"] else "medium"
    notes = [*_measured(rules, texts), *notes, *faults]
    return (yield from _write(brief, figures, confidence, notes, checks))


def regress(brief: Brief) -> Task:
    """The answer on the merged files against the one that was approved, as far as the reviewer let it through."""
    texts = yield from _texts(brief, ("Patch", "Baseline", "Dry run", "Answer"))
    changes = evidence.diffs(brief.section("Changed files").blocks)
    hint = brief.section("Reviewer's hint").block("hint")
    rules = rules_left(_rules(texts["Patch"], changes), hint)
    _, changed = yield from _changed_files(brief, changes)
    scenario = brief.section("Scenario")
    test, original = scenario.block("testMessage"), scenario.block("originalMessage")
    lint, faults = evidence.lint(changed, changes, texts["Patch"])
    scope, notes = evidence.scope(changes, original)
    figures = {
        "lint": lint,
        "behavior": evidence.held(rules, approved=texts["Dry run"], answer=texts["Answer"]),
        "scope": scope,
    }
    checks = {
        "patchInSandbox": "pass" if _in_sandbox(changes, changed) else "fail",
        "usedInDryRun": _used(rules, texts["Baseline"], texts["Answer"]),
        "probe": _probe(rules, test, original, texts["Baseline"]),
        "probeLanguage": "same" if language(test) == language(original) else "different",
    }
    notes = [*_measured(rules, texts), *notes, *faults]
    return (yield from _write(brief, figures, "high" if rules else "low", notes, checks))


def _texts(brief: Brief, labels: Sequence[str]) -> Texts:
    """By label; a file that isn't there, or was never made, is empty."""
    found: dict[str, str] = {}
    for label in labels:
        path = brief.field(label)
        found[label] = ((yield from files.read(path)) or "").strip() if path.startswith("/") else ""
    return found


def _changed_files(
    brief: Brief, changes: Sequence[evidence.Diff]
) -> Generator[tuple[Call, ...], tuple[Result, ...], tuple[str, list[tuple[str, str]]]]:
    """All the text the changed files had in base, and each one's name and text in the sandbox."""
    base, changed = "", []
    for change in changes:
        base += (yield from files.read(f"{brief.field('Base')}/{change.rel}")) or ""
        changed.append((change.rel, (yield from files.read(f"{brief.field('Sandbox')}/{change.rel}")) or ""))
    return base, changed


def _rules(patch: str, changes: Sequence[evidence.Diff]) -> list[Rule]:
    """What the patch says it adds; where that names none of the known forms, what the added lines hold."""
    return rules_of_patch(patch) or find("\n".join(line for change in changes for line in change.added))


def _in_sandbox(changes: Sequence[evidence.Diff], changed: Sequence[tuple[str, str]]) -> bool:
    texts = dict(changed)
    return bool(changes) and all(line in texts[change.rel] for change in changes for line in change.added)


def _used(rules: Sequence[Rule], before: str, after: str) -> str:
    old, new = evidence.average_fit(rules, before), evidence.average_fit(rules, after)
    if not rules or old == new == 100:
        return "unclear"
    return "yes" if new > old else "no"


def _probe(rules: Sequence[Rule], test: str, original: str, before: str) -> str:
    if not test.strip() or test.split() == original.split():
        return "invalid"
    return "valid" if rules and evidence.average_fit(rules, before) < 100 else "soft"


def _measured(rules: Sequence[Rule], texts: dict[str, str]) -> list[str]:
    if not rules:
        return ["The change holds no rule of the forms this engine can measure: its figures say little"]
    kept = ", ".join(
        f"{label.lower()} {evidence.average_fit(rules, text)}%"
        for label, text in texts.items()
        if label != "Patch" and text
    )
    return [f"Rule kept by: {kept}"]


def _write(
    brief: Brief, figures: dict[str, int], confidence: str, notes: Sequence[str], checks: dict[str, str]
) -> Task:
    text = ". ".join([*notes, f"Scored by the {NAME}."])
    content: dict[str, Any] = {**figures, "confidence": confidence, "notes": text, "checks": checks}
    yield from files.write(brief.field("Score"), json.dumps(content, ensure_ascii=False, indent=2) + "\n")
    said = ", ".join(f"{name} {figure}" for name, figure in figures.items())
    return f"Score written: {said}; confidence {confidence}."
