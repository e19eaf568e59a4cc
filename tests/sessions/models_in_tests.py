"""Scripted models for turns in tests: what the next calls answer, call by call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

Step = str | dict[int, DeltaToolCall] | Callable[[Sequence[ModelMessage]], str]


def call_tool(name: str, arguments: str, call_id: str = "c1") -> dict[int, DeltaToolCall]:
    return {0: DeltaToolCall(name=name, json_args=arguments, tool_call_id=call_id)}


class Script:
    """Answers the model calls in turn; ``seen`` holds the messages of every call."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.seen: list[list[ModelMessage]] = []

    async def stream(
        self, messages: list[ModelMessage], _info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        self.seen.append(list(messages))
        step = self.steps.pop(0)
        yield step(messages) if callable(step) else step

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Script:
        model = FunctionModel(stream_function=self.stream)
        monkeypatch.setattr("agents.providers.build_model", lambda _choice: model)
        return self
