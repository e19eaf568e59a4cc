"""Which model answers for an agent, with which key."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agents.turn import ModelChoice
from core.settings_file import Settings
from core.settings_schema import PROVIDER_KEY_VARIABLES
from workspaces.agent_yaml import AgentConfig

DEFAULT_PROVIDER = "offline"
PROVIDERS = (DEFAULT_PROVIDER, *PROVIDER_KEY_VARIABLES)

_NEEDS_NO_KEY = frozenset({DEFAULT_PROVIDER, "openai-compatible", "bedrock"})
"""bedrock also signs with the machine's own AWS credentials; a compatible server on loopback asks for none."""


_AWS_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class ModelUnavailableError(Exception):
    """The agent's model can't be called; the text is one line that names what to fill in."""


def resolve_model(
    agent: AgentConfig, settings: Settings, *, environment: Mapping[str, str] | None = None
) -> ModelChoice:
    """Raises ModelUnavailableError."""
    model = agent.model
    provider = model.provider or DEFAULT_PROVIDER
    if provider not in PROVIDERS:
        raise _unavailable(agent, f"the unknown provider {provider!r}; set model.provider in {agent.file}")
    if provider != DEFAULT_PROVIDER and not model.id:
        raise _unavailable(agent, f"provider {provider} without a model; set model.id in {agent.file}")
    if provider == "openai-compatible" and not model.endpoint:
        raise _unavailable(
            agent, f"provider {provider} without an address; set model.endpoint in {agent.file}"
        )
    key = provider_key(provider, settings, environment=environment)
    if not key and provider not in _NEEDS_NO_KEY:
        variable = PROVIDER_KEY_VARIABLES[provider][0]
        raise _unavailable(
            agent,
            f"provider {provider} without a key; run: halo settings set {provider}.secrets.api_key "
            f"(or set {variable} in the environment)",
        )
    return ModelChoice(
        provider=provider,
        id=model.id,
        endpoint=model.endpoint,
        api_key=key,
        max_tokens=model.max_tokens,
        thinking=model.thinking,
        verbosity=model.verbosity,
        prompt_caching=model.prompt_caching,
        credentials=_credentials(provider, os.environ if environment is None else environment),
    )


def provider_key(provider: str, settings: Settings, *, environment: Mapping[str, str] | None = None) -> str:
    """The key from the settings, else from the provider's usual variables; empty when there is none."""
    if provider not in PROVIDER_KEY_VARIABLES:
        return ""
    variables = os.environ if environment is None else environment
    from_environment = (variables.get(name, "") for name in PROVIDER_KEY_VARIABLES[provider])
    return settings.get(f"{provider}.secrets.api_key") or next(filter(None, from_environment), "")


def _credentials(provider: str, variables: Mapping[str, str]) -> dict[str, str]:
    """AWS's own variables; a process that has taken them out of its environment hands them in here."""
    if provider != "bedrock":
        return {}
    found = {name.lower(): variables.get(name, "") for name in _AWS_VARIABLES}
    found["region_name"] = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION", "")
    return {name: value for name, value in found.items() if value}


def _unavailable(agent: AgentConfig, what: str) -> ModelUnavailableError:
    return ModelUnavailableError(f"The agent {agent.id} uses {what}.")
