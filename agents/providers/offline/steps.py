"""A task as a generator of tool calls, worked again from its start at every model call.

The engine keeps no state between calls: the history does. Each call replays the task and answers what it asks
for from the tool results already there; the first request without an answer is what goes out next.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: dict[str, Any]

    @property
    def key(self) -> str:
        return f"{self.tool} {json.dumps(self.arguments, sort_keys=True)}"


@dataclass(frozen=True, slots=True)
class Result:
    """``ok`` False: the tool refused or failed, and ``text`` is its explanation."""

    text: str
    ok: bool = True


Task = Generator[tuple[Call, ...], tuple[Result, ...], str]
"""Yields calls that may run side by side, is sent their results in order, returns the final text."""


def next_step(task: Task, done: Iterable[tuple[Call, Result]]) -> str | tuple[Call, ...]:
    """The final text, or the calls whose results aren't in ``done`` yet."""
    results: dict[str, list[Result]] = defaultdict(list)
    for call, result in done:
        results[call.key].append(result)
    answer: tuple[Result, ...] | None = None
    while True:
        try:
            wanted = next(task) if answer is None else task.send(answer)
        except StopIteration as stop:
            return str(stop.value)
        missing = tuple(call for call in wanted if not results[call.key])
        if missing:
            return missing
        answer = tuple(results[call.key].pop(0) for call in wanted)
