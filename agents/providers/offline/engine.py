"""Which task a conversation asks for, and its next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.providers.offline import NAME, chat, drafter, merger, scorer, summary
from agents.providers.offline.brief import Brief, parse
from agents.providers.offline.flow import without_stamp
from agents.providers.offline.steps import Call, Result, Task, next_step

ROLES: dict[str, dict[str, Callable[[Brief], Task]]] = {
    "# Drafter": {"draft": drafter.draft, "fix": drafter.fix},
    "# Scorer": {"score": scorer.score, "regress": scorer.regress},
    "# Merger": {"merge": merger.merge},
}
"""By the first heading of the agent's own AGENT.md, then by the kind of brief."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A turn so far: ``done`` are its tool calls with their results, in order.

    ``earlier``: who spoke before it and what they said.
    """

    system_prompt: str
    message: str
    done: Sequence[tuple[Call, Result]]
    earlier: Sequence[tuple[str, str]] = ()


def step(situation: Situation) -> str | tuple[Call, ...]:
    """Text that ends the turn, or the next tool calls."""
    try:
        return next_step(_task(situation), situation.done)
    except OSError as error:
        return f"I stop here: {error} ({NAME})"


def _task(situation: Situation) -> Task:
    if situation.message.startswith(summary.HEADING):
        return summary.summarise([(who, without_stamp(text)) for who, text in situation.earlier])
    tasks = next(
        (tasks for heading, tasks in ROLES.items() if situation.system_prompt.lstrip().startswith(heading)),
        None,
    )
    message = without_stamp(situation.message)
    if tasks is None:
        return chat.answer(message, situation.system_prompt)
    brief = parse(message)
    if brief is None or brief.kind not in tasks:
        return _refuse(
            f"I expected a brief of the kind {' or '.join(tasks)} and did nothing. I am an {NAME}."
        )
    return tasks[brief.kind](brief)


def _refuse(text: str) -> Task:
    yield from ()
    return text
