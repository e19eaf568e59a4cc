"""From ``agent.yaml``'s ``model`` to a model of the library; each provider is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.errors import ModelNotUsable

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agents.turn import ModelChoice

HOSTED = ("anthropic", "openai", "google", "bedrock", "mistral", "groq")
PROVIDERS = ("offline", "openai-compatible", *HOSTED)


def build_model(choice: ModelChoice) -> Model:
    """The model to call; ModelNotUsable says which setting is missing. The first import takes 1 to 2 s."""
    if choice.provider == "offline":
        from agents.providers.offline.model import OfflineModel

        return OfflineModel(choice.id)
    if choice.provider == "openai-compatible":
        from agents.providers import openai_compatible

        return openai_compatible.build(choice)
    if choice.provider in HOSTED:
        from agents.providers import hosted

        return hosted.build(choice)
    if not choice.provider:
        raise ModelNotUsable(
            f"No model provider is set; set model.provider to one of {', '.join(PROVIDERS)}."
        )
    raise ModelNotUsable(
        f"Unknown model provider {choice.provider!r}; model.provider is one of {', '.join(PROVIDERS)}."
    )
