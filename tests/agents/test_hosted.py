"""The hosted providers against their own wire formats on loopback: replies, tools, and what failures become."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from agents.errors import ModelNotUsable
from agents.providers import HOSTED, build_model
from agents.providers.testing import ScriptedServer, refused_endpoint
from agents.providers.testing_hosted import WIRES, Wire
from agents.turn import ModelChoice

from .conftest import Played

Play = Callable[..., Played]
AWS = {"region_name": "eu-central-1", "aws_access_key_id": "AKIATEST", "aws_secret_access_key": "secret"}
TOOL = ("file_read", {"path": "docs/guide.md"})


@pytest.fixture(params=HOSTED)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


def choice(wire: Wire, endpoint: str, **changes: Any) -> ModelChoice:
    """bedrock with AWS credentials: its bearer token goes over TLS alone."""
    values: dict[str, Any] = {"provider": wire.provider, "id": wire.model, "endpoint": endpoint}
    if wire.provider == "bedrock":
        values["credentials"] = AWS
    else:
        values["api_key"] = "key-12345678"
    return ModelChoice(**{**values, **changes})


async def test_text_tools_and_usage(play: Play, wire: Wire) -> None:
    script = [wire.reply("Let me ", "look.", call=TOOL), wire.reply("It ", "says one.")]
    with ScriptedServer(script) as server:
        played = play("", model=choice(wire, wire.endpoint(server)))
        outcome = await played.run()
    assert (outcome.status, outcome.text, outcome.error) == ("completed", "It says one.", "")
    assert played.visible_text() == "Let me look.It says one."
    assert played.of_type("tool_result")[0].text == "one\ntwo\nthree\n"
    used = played.of_type("usage")[0]
    assert (used.input_tokens, used.output_tokens) == (10, 5)
    assert "one\\ntwo" in str(server.requests[1]) and "You are a test." in str(server.requests[1])


# mistral's plain models think in no part of their own
@pytest.mark.parametrize("wire", [name for name in HOSTED if name != "mistral"], indirect=True)
async def test_thinking_is_told_apart(play: Play, wire: Wire) -> None:
    with ScriptedServer([wire.reply("So it is.", thought="hm")]) as server:
        model = choice(wire, wire.endpoint(server), thinking={"enabled": True, "effort": "low"})
        played = play("", model=model)
        assert (await played.run()).text == "So it is."
    assert [event.text for event in played.of_type("thinking")] == ["hm"]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_overload_is_retried_by_the_loop_alone(play: Play, wire: Wire, status: int) -> None:
    with ScriptedServer([wire.failure(status, "slow down please"), wire.reply("ok")]) as server:
        played = play("", model=choice(wire, wire.endpoint(server)))
        assert (await played.run()).status == "completed"
    assert server.count == 2, "the SDK itself doesn't try again"
    assert "slow down please" in played.of_type("system")[0].text


async def test_a_torn_stream_is_discarded_and_asked_again(play: Play, wire: Wire) -> None:
    with ScriptedServer([wire.torn("Half an ", "answer"), wire.reply("Whole.")]) as server:
        played = play("", model=choice(wire, wire.endpoint(server)))
        outcome = await played.run()
    assert (outcome.status, outcome.text) == ("completed", "Whole."), outcome.error
    assert played.visible_text() == "Whole."


@pytest.mark.parametrize(
    ("status", "words"), [(401, "This key is wrong."), (403, "Not for you."), (404, "No such model.")]
)
async def test_a_wrong_key_or_model_ends_the_turn_with_the_providers_words(
    play: Play, wire: Wire, status: int, words: str
) -> None:
    with ScriptedServer([wire.failure(status, words)] * 2) as server:
        outcome = await play("", model=choice(wire, wire.endpoint(server))).run()
    assert (outcome.status, server.count) == ("failed", 1)
    assert words in outcome.error and "\n" not in outcome.error
    assert outcome.error.startswith(f"Agent writer: The model call to {wire.provider} {wire.model} failed")
    assert f"{wire.provider}.secrets.api_key" in outcome.error and "model.id" in outcome.error


TOO_LONG = {
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "openai": "Your input exceeds the context window of this model.",
    "google": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    "bedrock": "Input is too long for requested model.",
    "mistral": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "groq": "Please reduce the length of the messages or completion.",
}


async def test_too_long_a_context_is_compacted(play: Play, wire: Wire) -> None:
    from .test_compaction import conversation

    history = [*conversation(4), conversation(1)[0]]
    with ScriptedServer([wire.failure(400, TOO_LONG[wire.provider]), wire.reply("ok")]) as server:
        played = play("", history=history, model=choice(wire, wire.endpoint(server)))
        assert (await played.run()).status == "completed"
    assert played.of_type("history_replaced")[-1].compacted


async def test_nobody_listens(play: Play, wire: Wire) -> None:
    played = play("", model=choice(wire, refused_endpoint().removesuffix("/v1") + wire.path))
    outcome = await played.run()
    assert outcome.status == "failed"
    assert "after 5 tries" in outcome.error
    assert len(played.of_type("system")) == 4


async def test_options_reach_the_provider(play: Play) -> None:
    options = {"max_tokens": 2_000, "prompt_caching": "1h", "verbosity": "low"}
    sent = {}
    model_id = {
        "anthropic": "claude-sonnet-4-5",
        "openai": "gpt-5.1",
        "bedrock": "anthropic.claude-sonnet-4-5-v1:0",
    }
    for name in HOSTED:
        wire = WIRES[name]
        model_id = {
            "anthropic": "claude-sonnet-4-5",
            "openai": "gpt-5.1",
            "bedrock": "anthropic.claude-sonnet-4-5-v1:0",
        }
        with ScriptedServer([wire.reply("ok")]) as server:
            model = choice(wire, wire.endpoint(server), id=model_id.get(name, wire.model), **options)
            assert (await play("", model=model).run()).status == "completed", name
        sent[name] = server.requests[0]
    assert sent["anthropic"]["max_tokens"] == 2_000 and "'ttl': '1h'" in str(sent["anthropic"])
    assert sent["openai"]["max_output_tokens"] == 2_000
    assert sent["openai"]["text"]["verbosity"] == "low"
    assert sent["google"]["generationConfig"]["maxOutputTokens"] == 2_000
    assert sent["bedrock"]["inferenceConfig"]["maxTokens"] == 2_000 and "cachePoint" in str(sent["bedrock"])
    assert sent["mistral"]["max_tokens"] == 2_000
    assert 2_000 in (sent["groq"].get("max_tokens"), sent["groq"].get("max_completion_tokens"))


def test_a_missing_extra_is_one_line_with_the_command(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_sdk(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith(f"pydantic_ai.models.{wire.provider}"):
            raise ImportError("no SDK")
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_sdk)
    with pytest.raises(ModelNotUsable) as raised:
        build_model(choice(wire, ""))
    assert f"Provider {wire.provider} needs software that is not installed" in raised.value.text
    assert f"pip install 'pydantic-ai-slim[{wire.provider}]'" in raised.value.text
    assert "\n" not in raised.value.text


def test_a_missing_model_or_key_names_the_setting(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelNotUsable, match=f"Provider {wire.provider} needs model.id"):
        build_model(choice(wire, "", id=""))
    if wire.provider == "bedrock":
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        with pytest.raises(ModelNotUsable, match="set AWS_REGION"):
            build_model(choice(wire, "", credentials={}))
    else:
        with pytest.raises(ModelNotUsable, match=f"halo settings set {wire.provider}.secrets.api_key"):
            build_model(choice(wire, "", api_key=""))


async def test_no_call_is_possible_in_tests_unless_one_asks_for_it(wire: Wire, play: Play) -> None:
    from agents.loop import run_turn

    with ScriptedServer([wire.reply("ok")]) as server:
        played = play("", model=choice(wire, wire.endpoint(server)))
        outcome = await run_turn(played.turn, abort=played.abort)
    assert (outcome.status, server.count) == ("failed", 0)
