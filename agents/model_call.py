"""One streamed model call: request out, deltas as events, the reply as a wire-form message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agents import history as wire
from agents.errors import CallFailed
from agents.events import AgentEvent, Message, Stream, StreamDelta, Thinking, ThinkingDelta
from core.texts import encodable

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponseStreamEvent
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    from agents.providers.codec import Codec
    from agents.turn import Turn


class ModelCaller:
    """The model of one turn. ``partial_text`` is what the latest call had streamed as text when it ended."""

    def __init__(self, turn: Turn) -> None:
        from pydantic_ai.models import ModelRequestParameters

        from agents.providers import build_model
        from agents.providers.codec import Codec
        from agents.providers.settings import model_settings

        self._turn = turn
        self.model: Model = build_model(turn.model)
        self._codec: Codec = Codec()
        self._settings = model_settings(turn.model)
        self._parameters: ModelRequestParameters = ModelRequestParameters()
        self._streamed = ""
        self.has_streamed = False

    def offer(self, tool_definitions: list[ToolDefinition]) -> None:
        """What every request of the turn begins with: the same tools and instructions, for the cache."""
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters

        prompt = self._turn.system_prompt
        instructions = [InstructionPart(content=encodable(prompt))] if prompt else []
        self._parameters = ModelRequestParameters(
            function_tools=tool_definitions, instruction_parts=instructions
        )

    @property
    def takes_images(self) -> bool:
        return bool(self.model.profile.get("supports_image_input", True))

    @property
    def partial_text(self) -> str:
        return encodable(self._streamed)

    async def call(self, number: int) -> Message:
        """The reply to the turn's history. Raises CallFailed; what streamed until then stays on ``self``."""
        self._streamed = ""
        self.has_streamed = False
        try:
            return await self._stream(self._turn.history, lambda event: self._pass_on(event, number))
        except Exception as error:
            raise self._sorted(error) from error

    async def ask_quietly(self, messages: Sequence[Message]) -> Message:
        """A reply beside the conversation: no event tells of it. Raises CallFailed."""
        self._streamed = ""
        self.has_streamed = False
        try:
            return await self._stream(messages, lambda _event: None)
        except Exception as error:
            raise self._sorted(error) from error

    @property
    def context_window(self) -> int | None:
        """What the model can take at once, in tokens, where the library knows it."""
        return self.model.context_window

    def _sorted(self, error: Exception) -> CallFailed:
        from agents.providers.failures import sort_failure

        model = self._turn.model
        credentials = [value for name, value in model.credentials.items() if name != "region_name"]
        return sort_failure(
            error, has_images=wire.has_images(self._turn.history), keys=(model.api_key, *credentials)
        )

    async def _stream(
        self, messages: Sequence[Message], pass_on: Callable[[ModelResponseStreamEvent], None]
    ) -> Message:
        from pydantic_ai.direct import model_request_stream

        from agents.providers.codec import reply_to_wire

        async with model_request_stream(
            self.model,
            self._codec.objects(messages),
            model_settings=self._settings,
            model_request_parameters=self._parameters,
        ) as stream:
            async for event in stream:
                pass_on(event)
            reply = stream.get()
        return reply_to_wire(reply)

    def _pass_on(self, event: ModelResponseStreamEvent, number: int) -> None:
        from pydantic_ai import messages as library

        emit: Callable[[AgentEvent], None] = self._turn.emit
        if isinstance(event, library.PartStartEvent):
            piece = event.part
            if isinstance(piece, library.TextPart) and piece.content:
                self._text(piece.content, number)
            elif isinstance(piece, library.ThinkingPart) and piece.content:
                self.has_streamed = True
                emit(ThinkingDelta(number, encodable(piece.content)))
        elif isinstance(event, library.PartDeltaEvent):
            delta = event.delta
            if isinstance(delta, library.TextPartDelta) and delta.content_delta:
                self._text(delta.content_delta, number)
            elif isinstance(delta, library.ThinkingPartDelta) and delta.content_delta:
                self.has_streamed = True
                emit(ThinkingDelta(number, encodable(delta.content_delta)))
        elif isinstance(event, library.PartEndEvent):
            part = event.part
            if isinstance(part, library.TextPart) and part.content:
                emit(Stream(number, encodable(part.content)))
            elif isinstance(part, library.ThinkingPart) and part.content:
                emit(Thinking(number, encodable(part.content)))

    def _text(self, piece: str, number: int) -> None:
        self._streamed += piece
        self.has_streamed = True
        self._turn.emit(StreamDelta(number, encodable(piece)))
