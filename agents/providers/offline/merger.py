"""Follows a merge brief: each source's changed lines into the files as they are now, or a reason why not."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from agents.providers.offline import NAME, files, patching
from agents.providers.offline.brief import Brief, Section
from agents.providers.offline.evidence import Diff, diffs
from agents.providers.offline.rules import Rule, find, term
from agents.providers.offline.steps import Call, Result, Task

_LIMITS = re.compile(
    r"\b(?:only|without|except|leave out|leave|omit|drop|skip|not|don't|no|instead|but)\b", re.I
)
_LEAVE_OUT = re.compile(r"\b(?:without|except|leave out|omit|drop|skip|not)\s+(.+?)(?:[.;]|$)", re.I)


class Unmergeable(Exception):
    """Its text is the first line of ABORT.md."""


@dataclass(slots=True)
class Limit:
    """What the reviewer's hint allows: which sources (None: all), lines to leave out, rules instead."""

    only: frozenset[str] | None = None
    left_out: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = field(default_factory=tuple)


def merge(brief: Brief) -> Task:
    try:
        return (yield from _merge(brief))
    except (Unmergeable, files.NotWholeError) as reason:
        text = f"{str(reason)[:300]}\n\nNothing was applied. Decided by the {NAME}.\n"
        yield from files.write(brief.field("Abort"), text)
        return f"Not merged: wrote ABORT.md. {reason}"


def _merge(brief: Brief) -> Task:
    sources = [item for item in brief.sections if item.fields.get("Source")]
    limit = _limit(
        brief.section("Reviewer's hint").block("hint"), [item.fields["Source"] for item in sources]
    )
    taken: list[tuple[str, Diff]] = []
    texts: dict[str, str] = {}
    log: list[str] = []
    for source in sources:
        name = source.fields["Source"]
        yield (Call("file_read", {"path": source.fields["Patch"]}),)
        if limit.only is not None and name not in limit.only:
            log.append(f"{name}: left out, as the reviewer's hint says")
            continue
        log += yield from _apply(brief, source, limit, taken, texts)
    if not texts:
        raise Unmergeable("The reviewer's hint leaves nothing to apply.")
    for rel, text in texts.items():
        yield from files.write(f"{brief.field('Sandbox')}/{rel}", text)
    yield from files.write(
        brief.field("Log"), "\n".join([*log, f"Merged line by line by the {NAME}."]) + "\n"
    )
    return f"Merged into {', '.join(texts)}: wrote apply.log."


def _apply(
    brief: Brief, source: Section, limit: Limit, taken: list[tuple[str, Diff]], texts: dict[str, str]
) -> Generator[tuple[Call, ...], tuple[Result, ...], list[str]]:
    """Applies one source to ``texts`` and returns its log lines. Nothing is written yet."""
    name, log = source.fields["Source"], []
    for change in diffs(source.blocks):
        if change.rel == "hint" or not (change.added or change.removed):
            continue
        _refuse_contradictions(name, change, taken)
        old = yield from files.read(f"{source.fields['Source base']}/{change.rel}")
        new = yield from files.read(f"{source.fields['Source sandbox']}/{change.rel}")
        if new is None:
            raise Unmergeable(f"{name} takes {change.rel} away; a merge never deletes a file.")
        if old is None:
            old = patching.without(new, change.added)
        if change.rel not in texts:
            live = yield from files.read(f"{brief.field('Sandbox')}/{change.rel}")
            texts[change.rel] = old if live is None else live
        wanted, left = _within(limit, new, change)
        try:
            texts[change.rel] = patching.carried(old, wanted, texts[change.rel])
        except patching.Conflict as conflict:
            raise Unmergeable(f"{name} can't be applied to {change.rel}: {conflict}") from conflict
        taken.append((name, change))
        note = f"left out as the reviewer's hint says: {'; '.join(left)}" if left else "taken as drafted"
        log.append(f"{name}: applied {change.rel}: {note}")
    return log


def _refuse_contradictions(name: str, change: Diff, taken: Sequence[tuple[str, Diff]]) -> None:
    mine = find("\n".join(change.added))
    for other, earlier in taken:
        for theirs in find("\n".join(earlier.added)):
            for rule in mine:
                if rule.contradicts(theirs):
                    raise Unmergeable(
                        f"{other} and {name} contradict each other: "
                        f"“{theirs.sentence}” against “{rule.sentence}”"
                    )


def _limit(hint: str, names: Sequence[str]) -> Limit:
    """Reads a reviewer's hint. One that limits in words the engine can't read is no permission: ABORT.md."""
    if not hint.strip():
        return Limit()
    named = frozenset(name for name in names if name in hint or name.removeprefix("run-") in hint)
    rules = tuple(find(hint))
    if named:
        leaving = re.search(r"\b(?:without|except|leave out|omit|drop|skip|not)\b", hint, re.I)
        return Limit(only=frozenset(names) - named if leaving else named, rules=rules)
    if rules:
        return Limit(rules=rules)
    if left_out := _left_out(hint):
        return Limit(left_out=left_out)
    if _LIMITS.search(hint):
        raise Unmergeable(
            f"The reviewer's hint sets a limit that the {NAME} can't read: {' '.join(hint.split())}"
        )
    return Limit()


def _left_out(hint: str) -> tuple[str, ...]:
    return tuple(found.strip(" \"“”'`") for found in _LEAVE_OUT.findall(hint))


def rules_left(rules: Sequence[Rule], hint: str) -> list[Rule]:
    """Of a source's rules what a merge under this reviewer's hint leaves, the hint's own in place of some."""
    instead = find(hint)
    words = () if instead else _left_out(hint)
    return [
        next((rule for rule in instead if rule.contradicts(own)), own)
        for own in rules
        if not any(term(left) in own.sentence.lower() for left in words)
    ]


def _within(limit: Limit, new: str, change: Diff) -> tuple[str, list[str]]:
    """The source's file as far as the hint allows, and the lines left out or rewritten."""
    left: list[str] = []
    lines: list[str] = []
    for line in new.splitlines():
        ours = line in change.added and line.strip()
        if ours and any(term(words) in line.lower() for words in limit.left_out):
            left.append(line.strip("-* "))
            continue
        instead = (
            [rule for rule in limit.rules for there in find(line) if rule.contradicts(there)] if ours else []
        )
        if instead:
            left.append(f"{line.strip('-* ')} became {instead[0].sentence}")
            line = f"{line[: len(line) - len(line.lstrip('-* '))]}{instead[0].sentence}"
        lines.append(line)
    return "\n".join(lines) + "\n", left
