"""Between wire-form messages and the model library's objects, converting each message once.

The cache goes by the identity of the dict (history never edits one in place), so that a call over a long
history converts only what is new: well under a millisecond for 200 messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents import history as wire
from agents.events import Message
from core.texts import encodable_value, nests_deeper

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse

UNREADABLE = "arguments_that_were_not_json"
NOT_UNDERSTOOD = "[a part of the conversation that can't be read any more stood here]"
_KEPT_OF_REPLY = ("usage", "model_name", "timestamp", "provider_name", "provider_details", "finish_reason")


class Codec:
    def __init__(self) -> None:
        self._converted: dict[int, tuple[Message, ModelMessage]] = {}

    def objects(self, history: Sequence[Message]) -> list[ModelMessage]:
        """The history as library objects, the very same ones as at the call before.

        Lone surrogates, which no provider's request can carry, are left out of what is sent; the history
        may hold them (an import, an older log).
        """
        known = self._converted
        new = [message for message in history if id(message) not in known]
        for message, converted in zip(new, _converted(list(map(encodable_value, new))), strict=True):
            known[id(message)] = (message, converted)
        if len(known) > 2 * len(history) + 16:
            self._converted = {id(message): known[id(message)] for message in history}
        return [known[id(message)][1] for message in history]


def _converted(messages: list[Message]) -> list[ModelMessage]:
    """Of a message that the library doesn't take (somebody wrote into the log) what can be told of it."""
    from pydantic import ValidationError

    try:
        return _validated(messages)
    except ValidationError:
        if len(messages) > 1:
            return [converted for message in messages for converted in _converted([message])]
    (message,) = messages
    kind = message["kind"]
    return _validated([{"kind": kind, "parts": [_taken(kind, part) for part in message["parts"]]}])


def _validated(messages: list[Message]) -> list[ModelMessage]:
    """A person's text alone, with which conversations begin, is made directly: the library builds its validator for
    all kinds of messages when it is first used, which takes 0.1 s that the first call needn't wait for.
    """
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart

    if len(messages) == 1 and (text := _only_text(messages[0])) is not None:
        return [ModelRequest(parts=[UserPromptPart(content=text)])]
    return ModelMessagesTypeAdapter.validate_python(messages)


def _only_text(message: Message) -> str | None:
    match message:
        case {
            "kind": "request",
            "parts": [{"part_kind": "user-prompt", "content": str(text), **more}],
            **others,
        }:
            return None if more or others else text
    return None


def _taken(kind: str, part: wire.Part) -> wire.Part:
    """``part``, or as little of it as the library takes, or a line that stands for it."""
    from pydantic import ValidationError

    for form in (part, _bare(part)):
        try:
            _validated([{"kind": kind, "parts": [form]}])
        except ValidationError:
            continue
        return form
    return {"part_kind": "user-prompt" if kind == "request" else "text", "content": NOT_UNDERSTOOD}


def _bare(part: wire.Part) -> wire.Part:
    content = part.get("content")
    texts = [piece for piece in content if isinstance(piece, str)] if isinstance(content, list) else [content]
    bare = {"part_kind": part["part_kind"], "content": "\n".join(map(str, texts))}
    if part.get("tool_call_id"):
        bare |= {"tool_call_id": part["tool_call_id"], "tool_name": part.get("tool_name")}
    if part["part_kind"] == "tool-call":
        bare["args"] = arguments_of(part) or {}
    return bare


def reply_to_wire(reply: ModelResponse) -> Message:
    """A reply as the raw log keeps it: null and empty fields left out, tool arguments as an object."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    whole: Message = ModelMessagesTypeAdapter.dump_python([reply], mode="json")[0]
    message: Message = {"kind": "response", "parts": [_part(part) for part in whole["parts"]]}
    for name in _KEPT_OF_REPLY:
        if whole.get(name):
            message[name] = _without_nothing(whole[name])
    cleaned: Message = encodable_value(message)
    return cleaned


def arguments_of(part: dict[str, Any]) -> dict[str, Any] | None:
    """A call's arguments as an object; None when the model wrote something that isn't one, or can't be kept."""
    arguments = part.get("args")
    if arguments in (None, ""):
        return {}
    if isinstance(arguments, dict) and UNREADABLE in arguments:
        return None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) and not nests_deeper(arguments) else None


def _part(part: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = _without_nothing(part)
    if part["part_kind"] in ("text", "thinking"):
        kept.setdefault("content", "")
    if part["part_kind"] == "tool-call":
        arguments = arguments_of(part)
        kept["args"] = {UNREADABLE: str(part.get("args"))} if arguments is None else arguments
    return kept


def _without_nothing(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if item not in (None, "", {}, [], 0)}
