"""Mending a history, so that every provider accepts it, without the model library."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from agents.events import Message
from agents.history import CUT_SHORT, Part, is_tool_result, tool_calls, tool_result_part


def repair(history: Sequence[Message]) -> list[Message]:
    """Each call with an id of its own in its reply and answered right after it, no stray result, nothing empty.

    A call without a result gets one that says it was cut short. Of several calls with one id the first keeps it,
    and their results go by their order. Idempotent; a message that needs no repair stays the very same object.
    """
    messages = [cleaned for message in history if (cleaned := _without_empty(message)) is not None]
    repaired: list[Message] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        requests = [message] if message["kind"] == "request" else []
        while position < len(messages) and messages[position]["kind"] == "request":
            requests.append(messages[position])
            position += 1
        if message["kind"] == "response":
            message, requests = _told_apart(message, requests)
            repaired.append(message)
        repaired += _answered(tool_calls(message), requests)
    return repaired


def is_sound(history: Sequence[Message]) -> bool:
    repaired = repair(history)
    return len(repaired) == len(history) and all(a is b for a, b in zip(repaired, history, strict=True))


def _without_empty(message: Message) -> Message | None:
    parts = [part for part in message["parts"] if not _is_empty(part)]
    return _with_parts(message, parts) if parts else None


def _is_empty(part: Part) -> bool:
    kind = part["part_kind"]
    if kind in ("text", "user-prompt"):
        return not part.get("content")
    if kind == "thinking":
        return not part.get("content") and not part.get("signature") and not part.get("provider_details")
    return False


def _told_apart(reply: Message, requests: list[Message]) -> tuple[Message, list[Message]]:
    """A reply in which no two calls have one id, and what comes behind it with the results named alike."""
    ids = {call["tool_call_id"] for call in tool_calls(reply)}
    if len(ids) == len(tool_calls(reply)):
        return reply, requests
    free = {call_id: _free_ids(call_id, ids) for call_id in ids}
    calls: dict[str, list[Part]] = {}
    parts = []
    for part in reply["parts"]:
        if part["part_kind"] == "tool-call":
            same = calls.setdefault(part["tool_call_id"], [])
            if same:
                part = {**part, "tool_call_id": next(free[part["tool_call_id"]])}
            same.append(part)
        parts.append(part)
    open_calls = {call_id: iter(same) for call_id, same in calls.items() if len(same) > 1}
    return {**reply, "parts": parts}, [_with_results_of(open_calls, request) for request in requests]


def _free_ids(call_id: str, taken: Collection[str]) -> Iterator[str]:
    for count in itertools.count(2):
        if (free := f"{call_id}-{count}") not in taken:
            yield free


def _with_results_of(open_calls: Mapping[str, Iterator[Part]], request: Message) -> Message:
    """Each result named after the next call that had its id; one too many stays, and is stray."""
    parts = []
    for part in request["parts"]:
        same = open_calls.get(part.get("tool_call_id", "")) if is_tool_result(part) else None
        call = next(same, None) if same is not None else None
        if call is not None:
            part = {**part, "tool_call_id": call["tool_call_id"], "tool_name": call["tool_name"]}
        parts.append(part)
    return _with_parts(request, parts)


def _answered(calls: list[Part], requests: list[Message]) -> list[Message]:
    """``requests`` (all between two replies) so that exactly ``calls`` are answered, first of all."""
    if not calls and not any(is_tool_result(part) for request in requests for part in request["parts"]):
        return requests
    wanted = {call["tool_call_id"]: call for call in calls}
    results: dict[str, Part] = {}
    for request in requests:
        for part in request["parts"]:
            call_id = part.get("tool_call_id")
            if is_tool_result(part) and call_id in wanted and call_id not in results:
                results[call_id] = part
    missing = [
        tool_result_part(call_id=call_id, tool=call["tool_name"], text=CUT_SHORT, is_error=True)
        for call_id, call in wanted.items()
        if call_id not in results
    ]
    answers = [*results.values(), *missing]
    if not answers:
        return [kept for request in requests if (kept := _only(request, [])) is not None]
    if not requests or not any(is_tool_result(part) for part in requests[0]["parts"]):
        requests = [{"kind": "request", "parts": answers}, *requests]
    first = _only(requests[0], answers)
    rest = [_only(request, []) for request in requests[1:]]
    return [request for request in (first, *rest) if request is not None]


def _only(request: Message, answers: list[Part]) -> Message | None:
    """``request`` with exactly ``answers`` as its results, in front of whatever else it holds."""
    parts = [*answers, *(part for part in request["parts"] if not is_tool_result(part))]
    return _with_parts(request, parts) if parts else None


def _with_parts(message: Message, parts: list[Part]) -> Message:
    """The message itself when these are its parts already."""
    same = len(parts) == len(message["parts"]) and all(
        a is b for a, b in zip(parts, message["parts"], strict=True)
    )
    return message if same else {**message, "parts": parts}
