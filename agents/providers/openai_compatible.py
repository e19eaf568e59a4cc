"""Any server that speaks the Chat Completions API: Ollama, vLLM, llama.cpp, a proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agents.errors import ModelNotUsable

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIChatModel

    from agents.turn import ModelChoice


def build(choice: ModelChoice) -> OpenAIChatModel:
    """The model; ModelNotUsable names the key of ``agent.yaml`` that is missing or wrong."""
    if not choice.endpoint:
        raise ModelNotUsable("Provider openai-compatible needs model.endpoint, the server's base URL.")
    if urlsplit(choice.endpoint).scheme not in ("http", "https"):
        raise ModelNotUsable(f"model.endpoint {choice.endpoint!r} is not an http or https address.")
    if not choice.id:
        raise ModelNotUsable("Provider openai-compatible needs model.id, the model's name on that server.")
    return _model(choice.endpoint, choice.api_key, choice.id)


def _model(endpoint: str, api_key: str, model_id: str) -> OpenAIChatModel:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider(
        "openai-compatible",
        base_url=endpoint,
        api_key=api_key or None,
        # Without the first a stream torn at a packet's edge would pass for a short reply. The second keeps the
        # library from loading its price list for a server whose window it can't know: agent.yaml says it.
        profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True, context_window=None),
    )
    return OpenAIChatModel(model_id, provider=provider)
