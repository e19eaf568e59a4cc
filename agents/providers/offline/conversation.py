"""The library's messages, as far as the engine reads them, and its estimate of their tokens."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters

from agents.history import SUMMARY
from agents.providers.offline.engine import Situation
from agents.providers.offline.steps import Call, Result

CHARS_PER_TOKEN = 4


def situation(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> Situation:
    """The turn is what follows the last message of a person; that message may come in several parts."""
    start = max((place for place, message in enumerate(messages) if _asks(message)), default=0)
    return Situation(
        system_prompt=_system_prompt(messages, parameters),
        message="\n\n".join(_said(messages[start])) if messages else "",
        done=_done(messages[start:]),
        earlier=[pair for message in messages[:start] if (pair := _spoken(message))],
    )


def tokens(messages: Sequence[ModelMessage], system_prompt: str) -> int:
    """An estimate: four characters are a token."""
    return len(system_prompt) // CHARS_PER_TOKEN + sum(
        part_tokens(part) for message in messages for part in message.parts
    )


def part_tokens(part: object) -> int:
    return len(str(getattr(part, "content", "") or getattr(part, "args", ""))) // CHARS_PER_TOKEN + 1


def _asks(message: ModelMessage) -> bool:
    """Whether a person speaks here; a summary alone is nobody's message."""
    return any(isinstance(part, UserPromptPart) for part in _parts_of_now(message))


def _parts_of_now(message: ModelMessage) -> Sequence[object]:
    if not isinstance(message, ModelRequest):
        return ()
    return message.parts[1:] if SUMMARY in (message.metadata or {}) else message.parts


def _spoken(message: ModelMessage) -> tuple[str, str] | None:
    if isinstance(message, ModelRequest):
        texts = _texts(message.parts)
        return ("Person", "\n\n".join(texts)) if texts else None
    text = "\n\n".join(part.content for part in message.parts if isinstance(part, TextPart))
    return ("Agent", text) if text else None


def _said(message: ModelMessage) -> list[str]:
    return _texts(_parts_of_now(message))


def _texts(parts: Sequence[object]) -> list[str]:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts += [item for item in content if isinstance(item, str)]
    return texts


def _system_prompt(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> str:
    texts = [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(message, ModelRequest) and isinstance(part, SystemPromptPart)
    ]
    if parameters.instruction_parts:
        texts += [part.content for part in parameters.instruction_parts]
    else:
        given = [
            item.instructions for item in messages if isinstance(item, ModelRequest) and item.instructions
        ]
        texts += given[-1:]
    return "\n\n".join(texts)


def _done(turn: Sequence[ModelMessage]) -> list[tuple[Call, Result]]:
    results: dict[str, Result] = {}
    for message in turn:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                results[part.tool_call_id] = Result(part.model_response_str(), part.outcome == "success")
            elif isinstance(part, RetryPromptPart):
                results[part.tool_call_id] = Result(part.model_response(), ok=False)
    return [
        (Call(part.tool_name, part.args_as_dict()), results[part.tool_call_id])
        for message in turn
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool_call_id in results
    ]


def reply(step: str | tuple[Call, ...], messages: Sequence[ModelMessage]) -> list[TextPart | ToolCallPart]:
    """Ids count the calls of the history, so that the same history gives the same reply, byte for byte."""
    if isinstance(step, str):
        return [TextPart(step)]
    before = sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts)
    return [
        ToolCallPart(call.tool, call.arguments, tool_call_id=f"call_{before + number}")
        for number, call in enumerate(step, 1)
    ]
