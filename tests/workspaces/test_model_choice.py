"""Which model answers, and the one line that says why none can."""

from __future__ import annotations

import pytest

from core.paths import HaloHome
from core.settings_file import Settings
from core.settings_save import save
from workspaces.agent_yaml import AgentConfig, ModelConfig
from workspaces.model_choice import ModelUnavailableError, resolve_model


def agent(**model: str) -> AgentConfig:
    return AgentConfig("a", "workspace", ".halo/agents/a/agent.yaml", "A", model=ModelConfig(**model))  # type: ignore[arg-type]


def test_without_a_model_the_offline_provider_answers(home: HaloHome) -> None:
    choice = resolve_model(agent(), Settings.load(home), environment={})
    assert (choice.provider, choice.api_key) == ("offline", "")


def test_the_key_of_the_settings_comes_before_the_environments(home: HaloHome) -> None:
    environment = {"GEMINI_API_KEY": "from-environment"}
    wanted = agent(provider="google", id="m")
    assert resolve_model(wanted, Settings.load(home), environment=environment).api_key == "from-environment"
    save(home, {"google.secrets.api_key": "from-settings"})
    choice = resolve_model(wanted, Settings.load(home), environment=environment)
    assert choice.api_key == "from-settings"
    assert "from-settings" not in repr(choice)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ({"provider": "antropic"}, ("antropic", "model.provider", ".halo/agents/a/agent.yaml")),
        ({"provider": "openai"}, ("openai", "model.id")),
        ({"provider": "openai-compatible", "id": "m"}, ("model.endpoint",)),
        ({"provider": "openai", "id": "m"}, ("openai.secrets.api_key", "OPENAI_API_KEY")),
    ],
)
def test_what_is_missing_is_named_in_one_line(
    home: HaloHome, model: dict[str, str], named: tuple[str, ...]
) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        resolve_model(agent(**model), Settings.load(home), environment={})
    text = str(caught.value)
    assert "agent a" in text
    assert "\n" not in text
    for part in named:
        assert part in text


@pytest.mark.parametrize(
    "model", [{"provider": "bedrock"}, {"provider": "openai-compatible", "endpoint": "http://localhost:1/v1"}]
)
def test_some_providers_work_without_a_key(home: HaloHome, model: dict[str, str]) -> None:
    assert resolve_model(agent(id="m", **model), Settings.load(home), environment={}).api_key == ""
