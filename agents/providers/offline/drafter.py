"""Follows a draft or fix brief: one rule, in the words of one of the six forms, into one prompt file."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import yaml

from agents.providers.offline import NAME, files, flow, probe, surface, wishes
from agents.providers.offline.brief import Brief
from agents.providers.offline.obey import fit
from agents.providers.offline.rules import Rule, find
from agents.providers.offline.steps import Call, Result, Task
from agents.providers.offline.texts import sentences

CONTEXT = "Prompt files of the agent, as frozen"
_SHOWN_WHOLE = 20_000
"""A brief cuts longer files."""
EARLIER = "Earlier drafts that were not kept"


@dataclass(frozen=True, slots=True)
class Proposal:
    """``rules`` is empty when the hint fits none of the known forms; ``below`` is a line to stand under."""

    sentence: str
    rules: tuple[Rule, ...]
    because: str
    below: str = ""


class NothingToDo(Exception):
    """Its text is the reason that goes into .skip.md."""


def draft(brief: Brief) -> Task:
    try:
        return (yield from _draft(brief))
    except (NothingToDo, files.NotWholeError) as reason:
        yield from files.write(brief.field("Skip"), f"{reason} ({NAME})\n")
        return f"Nothing to change: wrote .skip.md. {reason}"


def _draft(brief: Brief) -> Task:
    talk = yield from _conversation(brief)
    target, content = yield from _target(brief)
    hint = brief.section("Hint").block("hint")
    proposal = _propose(hint, content, talk)
    _refuse_repeats(brief, proposal)
    changed = surface.with_rule(content, proposal.sentence, proposal.rules, after=proposal.below)
    if changed is None:
        raise NothingToDo(f"{target} already says: {proposal.sentence}")
    asked = _badly_answered(talk, proposal.rules)
    test = yield from probe.message(
        asked.message, [item.message for item in talk], proposal.rules, f"{brief.field('Base')}/docs"
    )
    yield from files.write(f"{brief.field('Sandbox')}/{target}", changed)
    yield from files.write(brief.field("Patch"), _patch(brief, target, proposal, asked, test))
    return f"Draft written: {target} gets the rule “{proposal.sentence}”"


def fix(brief: Brief) -> Task:
    """The same draft from the untouched base, tried on the simplest message there is: the original again."""
    (log,) = yield (Call("file_read", {"path": brief.field("Log")}),)
    result = yield from draft(brief)
    seen = "its log could not be read" if not log.ok else "the log names no fault of the rule itself"
    return f"{result} Rewritten after a failed dry run; {seen}."


def _conversation(brief: Brief) -> Generator[tuple[Call, ...], tuple[Result, ...], list[flow.Exchange]]:
    talk = flow.exchanges((yield from files.read_tail(brief.field("Tool flow"))) or "")
    if not talk:
        talk = flow.from_snapshot((yield from files.read(brief.field("Conversation"))) or "")
    if not talk:
        raise NothingToDo("The conversation holds no message of a person that I can read.")
    return talk


def _target(brief: Brief) -> Generator[tuple[Call, ...], tuple[Result, ...], tuple[str, str]]:
    """The agent's own AGENT.md where it may be changed, else INSTRUCTIONS.md; with its text."""
    agent = brief.field("Agent")
    frozen = {label.rpartition(" (")[0]: text for label, text in brief.section(CONTEXT).blocks}
    locks = brief.section("Locked").bullets
    config = yield from files.read(f"{brief.field('Base')}/agents/{agent}/agent.yaml")
    if re.search(r"^\s*halo-locked:\s*true", config or "", re.MULTILINE):
        locks = [*locks, f"agents/{agent}"]
    wanted = [f"agents/{agent}/AGENT.md"] if f"agents/{agent}/AGENT.md" in frozen else []
    for rel in [*wanted, "INSTRUCTIONS.md"]:
        if not surface.is_locked(rel, locks):
            live = yield from files.read(f"{brief.field('Base')}/{rel}")
            if live is None and len(frozen.get(rel, "")) >= _SHOWN_WHOLE:
                continue
            return rel, live if live is not None else frozen.get(rel, "")
    raise NothingToDo(f"The prompt files of {agent} are locked or too long for me.")


def _propose(hint: str, prompt: str, talk: Sequence[flow.Exchange]) -> Proposal:
    if rules := wishes.rules_of_hint(hint):
        return Proposal(" ".join(rule.sentence for rule in rules), tuple(rules), "the hint asks for it")
    if hint.strip():
        because = "the hint asks for it; it is none of the forms that I can measure"
        return Proposal(wishes.as_sentence(hint), (), because)
    below = wishes.vague_line(prompt)
    rule = wishes.sharpened([len(sentences(item.answer)) for item in talk if item.answer])
    if below and rule:
        because = f"“{below.lstrip('-* ')}” does not say how short, and the answers were long"
        return Proposal(rule.sentence, (rule,), because, below)
    raise NothingToDo("No hint was given, and no answer went against a rule that I understand.")


def _refuse_repeats(brief: Brief, proposal: Proposal) -> None:
    earlier = brief.section(EARLIER)
    for label, text in earlier.blocks:
        if label == "patch.md" and proposal.sentence in text:
            raise NothingToDo(f"The same rule was proposed before and not kept: {proposal.sentence}")


def _badly_answered(talk: Sequence[flow.Exchange], rules: Sequence[Rule]) -> flow.Exchange:
    """The exchange that keeps the rules least, the latest of equals."""
    answered = [item for item in talk if item.answer] or list(talk)
    return min(reversed(answered), key=lambda item: sum(fit(rule, item.answer) for rule in rules))


def _patch(brief: Brief, target: str, proposal: Proposal, asked: flow.Exchange, test: str) -> str:
    front = {
        "target": target,
        "testScenario": {
            "agentId": brief.field("Agent"),
            "originalMessage": asked.message,
            "testMessage": test,
        },
    }
    head = yaml.safe_dump(front, allow_unicode=True, sort_keys=False, width=100)
    said = len(sentences(asked.answer))
    return (
        f"---\n{head}---\n## What\nOne rule in `{target}`:\n\n> {proposal.sentence}\n\n"
        f"## Why\nBecause {proposal.because}. The answer to the message above ran to {said} "
        f"{'sentence' if said == 1 else 'sentences'}. Drafted by the {NAME}.\n"
    )


def rules_of_patch(patch: str) -> list[Rule]:
    """The rules that a patch announces, from its ``## What``."""
    found = re.search(r"^## What\n(.*?)(?=^## |\Z)", patch, re.MULTILINE | re.DOTALL)
    return find(found[1]) if found else []
