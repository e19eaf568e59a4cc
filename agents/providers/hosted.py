"""The library's own models for hosted providers, each behind an optional extra of the package.

Nothing of a provider's SDK is imported before it is used: one takes 1 to 4 s. ``model.endpoint`` replaces the
provider's address, for a proxy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agents.errors import ModelNotUsable
from agents.providers.settings import SILENCE_SEC

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from agents.turn import ModelChoice


def build(choice: ModelChoice) -> Model:
    """The model; ModelNotUsable is one line that names what to install or which setting to fill in."""
    from pydantic_ai.exceptions import UserError

    name = choice.provider
    if not choice.id:
        raise ModelNotUsable(f"Provider {name} needs model.id, the model's name.")
    if not choice.api_key and name != "bedrock":
        raise ModelNotUsable(f"Provider {name} has no key; run: halo settings set {name}.secrets.api_key")
    try:
        return BUILDERS[name](choice)
    except ImportError as error:
        raise ModelNotUsable(
            f"Provider {name} needs software that is not installed; "
            f"run: {sys.executable} -m pip install 'pydantic-ai-slim[{name}]'"
        ) from error
    except UserError as error:
        said = " ".join(str(error).split())
        raise ModelNotUsable(
            f"Provider {name} can't be used as it is set up (model.provider {name}): {said}"
        ) from error


def _endpoint(choice: ModelChoice) -> str | None:
    return choice.endpoint or None


def _anthropic(choice: ModelChoice) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key=choice.api_key, base_url=_endpoint(choice))
    return AnthropicModel(choice.id, provider=provider)


def _openai(choice: ModelChoice) -> Model:
    """The Responses API: thinking, verbosity and caching are there and not in Chat Completions."""
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key=choice.api_key, base_url=_endpoint(choice))
    return OpenAIResponsesModel(choice.id, provider=provider)


def _google(choice: ModelChoice) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    options: dict[str, Any] = {"base_url": choice.endpoint} if choice.endpoint else {}
    return GoogleModel(choice.id, provider=GoogleProvider(api_key=choice.api_key, **options))


def _mistral(choice: ModelChoice) -> Model:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    provider = MistralProvider(api_key=choice.api_key, base_url=_endpoint(choice))
    return MistralModel(choice.id, provider=provider)


def _groq(choice: ModelChoice) -> Model:
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    provider = GroqProvider(api_key=choice.api_key, base_url=_endpoint(choice))
    return GroqModel(choice.id, provider=provider)


def _bedrock(choice: ModelChoice) -> Model:
    """With a bearer token, else with the machine's AWS credentials; the region comes from AWS's variables."""
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    options: dict[str, Any] = dict(choice.credentials)
    if choice.api_key:
        options = {"api_key": choice.api_key, "region_name": options.get("region_name")}
    if not options.get("region_name") and "AWS_PROFILE" not in os.environ:
        raise ModelNotUsable("Provider bedrock needs a region; set AWS_REGION in Halo's environment.")
    provider = BedrockProvider(base_url=_endpoint(choice), aws_read_timeout=SILENCE_SEC, **options)
    # the SDK's own retries, which no setting of the library reaches: the loop must see each failure
    provider.client.meta.events.unregister(
        "needs-retry.bedrock-runtime", unique_id="retry-config-bedrock-runtime"
    )
    return BedrockConverseModel(choice.id, provider=provider)


BUILDERS: dict[str, Callable[[ModelChoice], Model]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
    "bedrock": _bedrock,
    "mistral": _mistral,
    "groq": _groq,
}
