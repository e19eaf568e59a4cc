"""One streamed model call: request out, deltas as events, the reply as a wire-form message."""

from __future__ import annotations

from collections.abc import Callable
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

    def __init__(self, turn: Turn, tool_definitions: list[ToolDefinition]) -> None:
        from pydantic_ai.messages import InstructionPart
        from pydantic_ai.models import ModelRequestParameters

        from agents.providers import build_model
        from agents.providers.codec import Codec
        from agents.providers.settings import model_settings

        self._turn = turn
        self.model: Model = build_model(turn.model)
        self._codec: Codec = Codec()
        self._settings = model_settings(turn.model)
        instructions = [InstructionPart(content=encodable(turn.system_prompt))] if turn.system_prompt else []
        self._parameters: ModelRequestParameters = ModelRequestParameters(
            function_tools=tool_definitions, instruction_parts=instructions
        )
        self._streamed = ""
        self.has_streamed = False

    @property
    def partial_text(self) -> str:
        return encodable(self._streamed)

    async def call(self, number: int) -> Message:
        """The reply to the turn's history. Raises CallFailed; what streamed until then stays on ``self``."""
        from agents.providers.failures import sort_failure

        self._streamed = ""
        self.has_streamed = False
        try:
            reply = await self._stream(number)
        except Exception as error:
            failure = sort_failure(error, has_images=wire.has_images(self._turn.history))
            raise self._without_key(failure) from error
        return reply

    def _without_key(self, failure: CallFailed) -> CallFailed:
        """Some servers repeat the key they refuse; their words go into logs and onto pages."""
        key = self._turn.model.api_key
        if len(key) < 8 or key not in failure.words:
            return failure
        words = failure.words.replace(key, "[the key]")
        return CallFailed(failure.kind, words, retry_after=failure.retry_after)

    async def _stream(self, number: int) -> Message:
        from pydantic_ai.direct import model_request_stream

        from agents.providers.codec import reply_to_wire

        async with model_request_stream(
            self.model,
            self._codec.objects(self._turn.history),
            model_settings=self._settings,
            model_request_parameters=self._parameters,
        ) as stream:
            async for event in stream:
                self._pass_on(event, number)
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
