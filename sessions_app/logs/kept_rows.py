"""Which ui rows show the messages of a history that is written anew."""

from __future__ import annotations

from collections.abc import Sequence

from agents.history import kept_behind, persons_parts
from sessions_app.logs.records import Message


def rows_after(
    messages: Sequence[Message], known: Sequence[Message], rows: Sequence[Sequence[str]]
) -> list[Sequence[str]]:
    """The rows of ``messages``, when ``rows`` showed those ``known`` before.

    Messages and parts that stayed the same objects keep their rows, wherever they stand now.
    """
    shown = {id(message): ids for message, ids in zip(known, rows, strict=False)}
    calls = _rows_by_call(known, rows)
    spoken = _rows_by_prompt(known, rows)
    return [
        shown.get(id(message)) or _rows_of_results(message, calls) or _rows_of_prompts(message, spoken)
        for message in messages
    ]


def last_let_go(
    messages: Sequence[Message], rows: Sequence[Sequence[str]], kept: Sequence[Sequence[str]]
) -> str:
    """Of the rows that showed ``messages`` the last that isn't among ``kept``; empty when all are."""
    still = {row_id for shown in kept for row_id in shown}
    older = kept_behind(messages[0]) if messages else 0
    in_order = [*rows[1 : 1 + older], *rows[:1], *rows[1 + older :]]  # a summary stands ahead of what it kept
    return next(
        (row_id for shown in reversed(in_order) for row_id in reversed(shown) if row_id not in still), ""
    )


def _rows_by_call(history: Sequence[Message], rows: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    return {
        part["tool_call_id"]: shown
        for message, shown in zip(history, rows, strict=False)
        for part in message["parts"]
        if part.get("tool_call_id")
    }


def _rows_of_results(message: Message, calls: dict[str, Sequence[str]]) -> Sequence[str]:
    """A message that repair made anew is shown by the row of the calls it answers."""
    for part in message["parts"]:
        if part.get("tool_call_id") in calls:
            return calls[part["tool_call_id"]]
    return ()


def _rows_by_prompt(history: Sequence[Message], rows: Sequence[Sequence[str]]) -> dict[int, str]:
    """The row of each part that somebody wrote, by the part's identity."""
    return {
        id(part): row_id
        for message, shown in zip(history, rows, strict=False)
        for part, row_id in zip(persons_parts(message), shown, strict=False)
    }


def _rows_of_prompts(message: Message, spoken: dict[int, str]) -> Sequence[str]:
    """A summary takes over the rows of the messages that stand in it word for word."""
    return tuple(spoken[id(part)] for part in persons_parts(message) if id(part) in spoken)
