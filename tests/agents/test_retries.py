"""The table "Errors and retries", row by row, over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from agents import history as wire
from agents.errors import CallFailed
from agents.events import CallDiscarded
from agents.providers import settings
from agents.providers.testing import (
    IMAGE_REFUSED,
    TOO_LONG,
    UNPAIRED,
    ScriptedServer,
    Step,
    ended_early,
    failed_in_stream,
    failure,
    hang,
    refused_endpoint,
    text,
    tool_calls,
    torn,
)
from agents.retries import RetryPolicy
from agents.turn import ModelChoice

from .conftest import Played

Play = Callable[..., Played]
OVERLOADS = [
    (429, "Rate limit reached."),
    (500, "Oops."),
    (502, "Bad gateway."),
    (503, "Overloaded."),
    (408, "Late."),
]
ACCOUNT = [
    (401, "Incorrect API key provided: sk-bad.", None),
    (402, "Insufficient balance.", None),
    (403, "This key may not use the model.", None),
    (404, "The model `tset-model` does not exist.", "model_not_found"),
    (429, "You exceeded your current quota.", "insufficient_quota"),
]


@pytest.mark.parametrize(("status", "words"), OVERLOADS)
async def test_overload_is_retried(play: Play, status: int, words: str) -> None:
    with ScriptedServer([failure(status, words)] * 4 + [text("At last.")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert (outcome.status, outcome.text, server.count) == ("completed", "At last.", 5)
    assert len(played.of_type("system")) == 4 and words in played.of_type("system")[0].text
    assert not played.of_type("call_discarded"), "nothing had streamed, so nothing is discarded"


async def test_five_tries_are_all(play: Play) -> None:
    with ScriptedServer([failure(503, "Overloaded.")] * 9) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert server.count == 5
    assert outcome.status == "failed"
    assert "after 5 tries" in outcome.error and "Overloaded." in outcome.error
    assert len(played.turn.history) == 1


async def test_retry_after_decides_the_delay(play: Play) -> None:
    policy = RetryPolicy(longest=0.02)
    with ScriptedServer([failure(429, "Slow down.", retry_after=0.01), text("ok")]) as server:
        played = play(server.endpoint, retries=policy)
        assert (await played.run()).status == "completed"
    known = CallFailed("overload", "x", retry_after=7.0)
    assert RetryPolicy().delay(known, 1) == 7.0
    assert RetryPolicy().delay(CallFailed("overload", "x", retry_after=900.0), 1) == 60.0


def test_delays_double_with_jitter_up_to_a_minute() -> None:
    steady = RetryPolicy(jitter=lambda: 0.0)
    overload, connection = CallFailed("overload", "x"), CallFailed("connection", "x")
    assert [steady.delay(overload, n) for n in range(1, 8)] == [2, 4, 8, 16, 32, 60, 60]
    assert [steady.delay(connection, n) for n in range(1, 4)] == [1, 2, 4]
    assert RetryPolicy(jitter=lambda: 1.0).delay(overload, 1) == 2.5


async def test_a_delay_obeys_an_abort_at_once(play: Play) -> None:
    with ScriptedServer([failure(429, "Slow down.", retry_after=50)]) as server:
        played = play(server.endpoint, retries=RetryPolicy())
        played.watchers.append(lambda event: event.type == "system" and played.abort.abort())
        started = time.monotonic()
        outcome = await played.run()
    assert outcome.status == "aborted"
    assert time.monotonic() - started < 25


@pytest.mark.parametrize(
    "broken", [torn("Half a "), ended_early("Half a "), failed_in_stream("Gone.", "Half a ")]
)
async def test_a_torn_stream_is_discarded_and_tried_again(play: Play, broken: Step) -> None:
    with ScriptedServer([broken, text("Whole.")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert (outcome.status, outcome.text) == ("completed", "Whole.")
    assert played.visible_text() == "Whole."
    types = [event.type for event in played.events]
    assert types.index("call_discarded") < types.index("system"), "first it disappears, then the notice"
    assert len(played.turn.history) == 2


async def test_a_call_given_up_keeps_its_latest_partial_text(play: Play) -> None:
    with ScriptedServer([torn(f"Try {n}.") for n in range(1, 6)]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert outcome.status == "failed"
    assert played.turn.history[-1]["parts"][0]["content"] == "Try 5." + wire.PARTIAL_FAILED
    assert played.visible_text() == "Try 5."
    assert len([event for event in played.events if isinstance(event, CallDiscarded)]) == 4


async def test_a_torn_tool_call_never_runs(play: Play) -> None:
    def torn_call(handler: object) -> None:
        handler.start_stream()  # type: ignore[attr-defined]
        call = {
            "index": 0,
            "id": "c",
            "type": "function",
            "function": {"name": "file_write", "arguments": '{"pa'},
        }
        handler.chunk({"tool_calls": [call]})  # type: ignore[attr-defined]
        handler.reset()  # type: ignore[attr-defined]

    with ScriptedServer([torn_call, text("ok")]) as server:
        played = play(server.endpoint)
        assert (await played.run()).status == "completed"
    assert not played.of_type("tool_call")


async def test_a_refused_connection_is_retried_and_given_up(play: Play) -> None:
    played = play(refused_endpoint())
    outcome = await played.run()
    assert outcome.status == "failed"
    assert len(played.of_type("system")) == 4


async def test_a_silent_server_has_timed_out(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SILENCE_SEC", 0.3)
    with ScriptedServer([hang("Well, "), text("Back.")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert (outcome.status, outcome.text) == ("completed", "Back.")
    assert played.visible_text() == "Back."


@pytest.mark.parametrize(("status", "words", "code"), ACCOUNT)
async def test_account_errors_end_the_turn_with_the_providers_words(
    play: Play, status: int, words: str, code: str | None
) -> None:
    with ScriptedServer([failure(status, words, code=code), text("no")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert server.count == 1
    assert outcome.status == "failed"
    assert words in outcome.error and "writer" in outcome.error and "openai-compatible" in outcome.error


async def test_unpaired_calls_are_repaired_and_tried_again_once(play: Play) -> None:
    with ScriptedServer([failure(400, UNPAIRED), text("ok")]) as server:
        assert (await play(server.endpoint).run()).status == "completed"
    with ScriptedServer([failure(400, UNPAIRED)] * 3) as server:
        outcome = await play(server.endpoint).run()
    assert (outcome.status, server.count) == ("failed", 2)


async def test_a_broken_history_is_repaired_before_it_is_sent(play: Play) -> None:
    history = [
        wire.user_message("go"),
        wire.reply_message([wire.tool_call_part(call_id="c1", tool="glob", arguments={"pattern": "*"})]),
        wire.user_message("and?"),
    ]
    with ScriptedServer([text("ok")]) as server:
        played = play(server.endpoint, history=history)
        assert (await played.run()).status == "completed"
    roles = [message["role"] for message in server.requests[0]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert played.of_type("history_replaced")[0].reason == "repaired"


async def test_refused_images_become_text_for_good(play: Play) -> None:
    history = [wire.user_message("what is this?", [("image/png", b"\x89PNG")])]
    with ScriptedServer([failure(400, IMAGE_REFUSED), text("Nothing to see.")]) as server:
        played = play(server.endpoint, history=history)
        outcome = await played.run()
    assert outcome.status == "completed"
    assert "image_url" in str(server.requests[0]) and "image_url" not in str(server.requests[1])
    assert wire.IMAGE_REMOVED in str(played.turn.history)
    assert not wire.has_images(played.saved)


async def test_too_long_a_context_is_compacted_locally_and_tried_again(play: Play) -> None:
    history = [wire.user_message("first")]
    for n in range(6):
        call = wire.tool_call_part(call_id=f"c{n}", tool="file_read", arguments={"path": f"{n}"})
        result = wire.tool_result_part(call_id=f"c{n}", tool="file_read", text=f"<{n}>" * 100)
        history += [wire.reply_message([call]), {"kind": "request", "parts": [result]}]
    history += [wire.reply_message([wire.text_part("so far")]), wire.user_message("the newest")]
    with ScriptedServer([failure(400, TOO_LONG), failure(400, TOO_LONG), text("ok")]) as server:
        played = play(server.endpoint, history=history)
        assert (await played.run()).status == "completed"
    sizes = [len(str(request["messages"])) for request in server.requests]
    assert sizes[0] > sizes[1] > sizes[2]
    assert "<5>" in str(server.requests[1]) and "<4>" not in str(server.requests[1])
    assert "the newest" in str(server.requests[2]["messages"][-1])


async def test_too_long_with_nothing_to_leave_out_ends_the_turn(play: Play) -> None:
    with ScriptedServer([failure(400, TOO_LONG)] * 3) as server:
        outcome = await play(server.endpoint).run()
    assert (outcome.status, server.count) == ("failed", 1)
    assert "maximum context length" in outcome.error


async def test_any_other_refusal_ends_the_turn(play: Play) -> None:
    with ScriptedServer([failure(400, "temperature is not allowed")] * 2) as server:
        outcome = await play(server.endpoint).run()
    assert (outcome.status, server.count) == ("failed", 1)


async def test_a_failure_after_tool_calls_keeps_what_was_done(play: Play) -> None:
    steps = [tool_calls(("file_list", {"path": "."})), failure(401, "Key revoked.")]
    with ScriptedServer(steps) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert outcome.status == "failed"
    assert [message["kind"] for message in played.turn.history] == ["request", "response", "request"]


async def test_a_key_that_the_server_repeats_is_not_shown(play: Play) -> None:
    with ScriptedServer([failure(401, "Incorrect API key provided: sk-very-secret.")]) as server:
        choice = ModelChoice(
            provider="openai-compatible", id="m", endpoint=server.endpoint, api_key="sk-very-secret"
        )
        played = play("", model=choice)
        outcome = await played.run()
    assert "Incorrect API key provided: [the key]." in outcome.error
    assert "sk-very-secret" not in str(played.events)


async def test_nor_is_one_of_several_credentials(play: Play) -> None:
    said = "Bad token token-very-secret for AKIAVERYSECRET in eu-central-1."
    credentials = {
        "aws_access_key_id": "AKIAVERYSECRET",
        "aws_session_token": "token-very-secret",
        "region_name": "eu-central-1",
    }
    with ScriptedServer([failure(403, said)]) as server:
        choice = ModelChoice(
            provider="openai-compatible", id="m", endpoint=server.endpoint, credentials=credentials
        )
        played = play("", model=choice)
        outcome = await played.run()
    assert "Bad token [the key] for [the key] in eu-central-1." in outcome.error
    assert "very-secret" not in str(played.events)


async def test_of_a_page_that_a_proxy_sends_the_beginning_is_shown(play: Play) -> None:
    """The key goes first: a part of it left at the cut would be shown."""
    said = "y" * 1_990 + "sk-very-secret" + "z" * 500_000
    with ScriptedServer([failure(400, said)]) as server:
        choice = ModelChoice(
            provider="openai-compatible", id="m", endpoint=server.endpoint, api_key="sk-very-secret"
        )
        played = play("", model=choice)
        outcome = await played.run()
    assert "y" * 1_990 in outcome.error and "characters]" in outcome.error
    assert len(outcome.error) < 2_500
    assert "sk-" not in str(played.events)


def test_the_key_is_not_in_the_choices_repr() -> None:
    choice = ModelChoice(provider="openai-compatible", id="m", endpoint="http://x", api_key="sk-very-secret")
    assert "sk-very-secret" not in repr(choice)
