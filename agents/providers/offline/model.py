"""The engine behind the model library's own interface: it streams, calls tools and counts tokens."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from agents.providers.offline import conversation, script
from agents.providers.offline.engine import step

PROVIDER = "offline"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PIECE = re.compile(r"\s*\S+(?:\s+\S+){0,3}|\s+")


class OfflineModel(Model):
    """``model_id`` is ``agent.yaml``'s ``model.id``: empty, or ``script:<path>`` for a test's script."""

    def __init__(self, model_id: str = "") -> None:
        # In place of the base's own start, which would load a price list that nothing here asks for (0.2 s);
        # a stated window, if only none, keeps the profile from looking there.
        self._profile = ModelProfile(supports_image_input=False, context_window=None)
        self._script = script.load(model_id)
        self._name = model_id or "rules"

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return PROVIDER

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async with self.request_stream(messages, model_settings, model_request_parameters) as stream:
            async for _ in stream:
                pass
            return stream.get()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        situation = conversation.situation(messages, model_request_parameters)
        scripted = self._script.take(situation.message) if self._script else None
        torn: Exception | None = None
        if scripted is None:
            said = step(situation)
        else:
            await scripted.wait()
            if (failure := scripted.failure()) is not None:
                raise failure
            said, torn = scripted.said(situation.message), scripted.tear()
        yield OfflineStream(
            model_request_parameters=model_request_parameters,
            parts=conversation.reply(said, messages),
            name=self._name,
            input_tokens=conversation.tokens(messages, situation.system_prompt),
            torn=torn,
        )


@dataclass
class OfflineStream(StreamedResponse):
    """Four words a piece. ``torn`` is raised after the last one."""

    parts: list[TextPart | ToolCallPart]
    name: str
    input_tokens: int
    torn: Exception | None = None
    _at: datetime = field(default=_EPOCH, init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        self._usage += RequestUsage(input_tokens=self.input_tokens)
        for place, part in enumerate(self.parts):
            self._usage += RequestUsage(output_tokens=conversation.part_tokens(part))
            if isinstance(part, TextPart):
                for piece in _PIECE.findall(part.content):
                    for event in self._parts_manager.handle_text_delta(vendor_part_id=place, content=piece):
                        yield event
            else:
                yield self._parts_manager.handle_tool_call_part(
                    vendor_part_id=place,
                    tool_name=part.tool_name,
                    args=part.args,
                    tool_call_id=part.tool_call_id,
                )
        if self.torn is not None:
            raise self.torn

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def provider_name(self) -> str:
        return PROVIDER

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        """The epoch: the same history gives the same reply, byte for byte; the log has its own clock."""
        return self._at
