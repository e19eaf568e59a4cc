"""A turn against a scripted server over real HTTP: answering, tools, stopping."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

import pytest

from agents import history as wire
from agents.providers.testing import ScriptedServer, hang, text, thinking, tool_calls
from agents.turn import Limits
from agents.views import workspace_view

from .conftest import Held, Place, Played

Play = Callable[..., Played]


async def test_a_reply_is_streamed_and_saved(play: Play) -> None:
    with ScriptedServer([text("Hel", "lo")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert (outcome.status, outcome.text) == ("completed", "Hello")
    assert [event.text for event in played.of_type("stream_delta")] == ["Hel", "lo"]
    assert [event.text for event in played.of_type("stream")] == ["Hello"]
    assert played.events[0].type == "agent_start"
    assert played.events[-1].type == "complete"
    assert (played.of_type("usage")[0].input_tokens, played.of_type("usage")[0].output_tokens) == (10, 5)
    assert server.requests[0]["messages"][0] == {"role": "system", "content": "You are a test."}


async def test_thinking_has_its_own_events(play: Play) -> None:
    with ScriptedServer([thinking("hm", "So it is.")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert outcome.text == "So it is."
    assert [event.text for event in played.of_type("thinking")] == ["hm"]


async def test_tool_calls_are_run_and_answered(play: Play, place: Place) -> None:
    steps = [
        tool_calls(
            ("file_read", {"path": "docs/guide.md"}),
            ("file_read", {"path": "nowhere.md"}),
            ("file_write", {"path": "out.txt", "content": "made"}),
            before="Let me look.",
        ),
        text("Done."),
    ]
    with ScriptedServer(steps) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert outcome.text == "Done."
    assert (place.root / "out.txt").read_text() == "made"
    results = {event.call_id: event for event in played.of_type("tool_result")}
    assert [event.tool for event in played.of_type("tool_call")] == ["file_read", "file_read", "file_write"]
    assert results["call_1_0"].text == "one\ntwo\nthree\n"
    assert results["call_1_1"].is_error and "does not exist" in results["call_1_1"].text
    answered = [m["tool_call_id"] for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert set(answered) == {"call_1_0", "call_1_1", "call_1_2"}


async def test_wrong_calls_are_told_to_the_model(play: Play) -> None:
    calls = tool_calls(
        ("no_such_tool", {}), ("file_read", "{not json"), ("file_read", {"file": "x"}), ("file_read", "[1]")
    )
    with ScriptedServer([calls, text("I see.")]) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    assert outcome.status == "completed"
    texts = [event.text for event in played.of_type("tool_result")]
    assert all(event.is_error for event in played.of_type("tool_result"))
    assert "no tool 'no_such_tool'" in texts[0]
    assert "not a JSON object" in texts[1]
    assert "path: Field required" in texts[2]
    assert "not a JSON object" in texts[3]


async def test_a_tool_that_raises_is_an_error_result(play: Play) -> None:
    def explode(subject: str) -> str:
        """Explode."""
        raise RuntimeError(f"no {subject}")

    async def greet(name: str = "you") -> str:
        """Greet.

        Args:
            name: Whom to greet.
        """
        return f"hello {name}"

    with ScriptedServer([tool_calls(("explode", {"subject": "luck"}), ("greet", {})), text("ok")]) as server:
        played = play(server.endpoint, extra_tools=(explode, greet))
        assert (await played.run()).status == "completed"
    first, second = played.of_type("tool_result")
    assert first.is_error and "no luck" in first.text
    assert second.text == "hello you"
    offered = {tool["function"]["name"]: tool["function"] for tool in server.requests[0]["tools"]}
    assert offered["greet"]["description"] == "Greet."
    assert offered["greet"]["parameters"]["properties"]["name"]["description"] == "Whom to greet."


async def test_readonly_offers_no_writing_tool(play: Play) -> None:
    with ScriptedServer([tool_calls(("file_write", {"path": "a", "content": "b"})), text("ok")]) as server:
        played = play(server.endpoint, access="readonly")
        await played.run()
    names = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert not names & {"file_write", "file_edit"}
    assert played.of_type("tool_result")[0].is_error


async def test_the_same_call_again_and_again_is_warned_of_and_ends_the_turn(play: Play) -> None:
    with ScriptedServer([tool_calls(("file_list", {"path": "docs"}))] * 6) as server:
        played = play(server.endpoint)
        outcome = await played.run()
    texts = [event.text for event in played.of_type("tool_result")]
    assert len(texts) == 5 == server.count
    assert ["Warning" in text for text in texts] == [False, False, True, True, False]
    assert outcome.status == "failed"
    assert played.of_type("error")[0].code == "repeated_call"


async def test_model_calls_are_limited(play: Play) -> None:
    steps = [tool_calls(("file_read", {"path": f"{n}"})) for n in range(4)]
    with ScriptedServer(steps) as server:
        played = play(server.endpoint, limits=Limits(max_model_calls=3))
        outcome = await played.run()
    assert server.count == 3
    assert outcome.status == "failed"
    assert "max_model_calls" in outcome.error


async def test_a_long_result_is_cut_for_the_model_and_longer_for_people(play: Play, place: Place) -> None:
    with ScriptedServer([tool_calls(("shell_exec", {"command": "seq 1 20000"})), text("ok")]) as server:
        played = play(server.endpoint)
        await played.run()
    result = played.of_type("tool_result")[0]
    assert len(result.text) < 8_400 and "characters left out" in result.text
    assert result.text.startswith("1\n") and result.text.endswith("[exit code 0]")
    assert len(result.shown) > 60_000


async def test_an_abort_in_the_stream_ends_at_once_and_keeps_the_partial_text(play: Play) -> None:
    with ScriptedServer([hang("Once upon")]) as server:
        played = play(server.endpoint)
        played.watchers.append(lambda event: event.type == "stream_delta" and played.abort.abort())
        outcome = await played.run()
    assert outcome.status == "aborted"
    assert not played.of_type("error")
    assert played.turn.history[-1]["parts"][0]["content"] == "Once upon" + wire.PARTIAL_ABORTED


async def test_an_abort_kills_the_command_and_lands_its_result(play: Play, place: Place) -> None:
    command = "(sleep 60; touch survived) & echo started; sleep 60"
    calls = tool_calls(("shell_exec", {"command": command}), ("file_write", {"path": "x", "content": "y"}))
    with ScriptedServer([calls]) as server:
        played = play(server.endpoint)
        played.watchers.append(lambda event: event.type == "tool_call" and abort_soon(played))
        outcome = await played.run()
    assert outcome.status == "aborted"
    first = played.of_type("tool_result")[0]
    assert first.interrupted and "started" in first.text and "turn was stopped" in first.text
    assert not (place.root / "x").exists()
    results = played.turn.history[-1]["parts"]
    assert [part["tool_call_id"] for part in results] == ["call_1_0", "call_1_1"]
    assert results[1]["content"] == wire.CUT_SHORT


def abort_soon(played: Played) -> None:
    threading.Timer(0.2, played.abort.abort).start()


async def test_a_cancelled_task_takes_its_commands_along(play: Play, held: Held) -> None:
    with ScriptedServer(
        [tool_calls(("shell_exec", {"command": f"exec 3>{held.name}; echo up >&3; sleep 600"}))]
    ) as server:
        played = play(server.endpoint)
        task = asyncio.create_task(played.run())
        assert await asyncio.to_thread(held.wait) == b"up\n"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await asyncio.to_thread(held.wait) == b""


async def test_an_abort_before_the_turn_calls_no_model(play: Play) -> None:
    with ScriptedServer([text("no")]) as server:
        played = play(server.endpoint)
        played.abort.abort()
        assert (await played.run()).status == "aborted"
    assert server.count == 0


async def test_a_soft_interrupt_ends_after_the_current_call(play: Play, place: Place) -> None:
    calls = tool_calls(
        ("file_write", {"path": "first", "content": "1"}), ("file_write", {"path": "second", "content": "2"})
    )
    with ScriptedServer([calls]) as server:
        played = play(server.endpoint, wants_interrupt=lambda: True)
        outcome = await played.run()
    assert outcome.status == "interrupted"
    assert (place.root / "first").exists() and not (place.root / "second").exists()
    assert [event.interrupted for event in played.of_type("tool_result")] == [False, True]


@pytest.mark.parametrize(
    ("provider", "endpoint", "model", "named"),
    [
        ("openai-compatible", "", "m", "model.endpoint"),
        ("openai-compatible", "ftp://x", "m", "model.endpoint"),
        ("openai-compatible", "http://localhost:1/v1", "", "model.id"),
        ("opanai", "", "m", "opanai"),
        ("", "", "", "model.provider"),
    ],
)
async def test_an_unusable_model_names_the_setting(
    play: Play, provider: str, endpoint: str, model: str, named: str
) -> None:
    from agents.turn import ModelChoice

    played = play("", model=ModelChoice(provider=provider, id=model, endpoint=endpoint))
    outcome = await played.run()
    assert outcome.status == "failed"
    assert named in outcome.error and "writer" in outcome.error
    assert len(played.turn.history) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a\\ud800"}',
        '{"path": ' + "[" * 400 + "]" * 400 + "}",
        "[" * 100_000,
        '{"path": ' + "9" * 5_000 + "}",
    ],
)
async def test_arguments_no_request_could_carry_do_not_spoil_the_session(play: Play, arguments: str) -> None:
    with ScriptedServer([tool_calls(("file_read", arguments)), text("Done.")]) as server:
        outcome = await play(server.endpoint).run()
    assert (outcome.status, outcome.text) == ("completed", "Done.")


async def test_half_characters_of_a_model_and_of_file_names_do_not_spoil_the_session(
    play: Play, place: Place
) -> None:
    (place.root / os.fsdecode(b"bad-\xff.txt")).write_text("x")
    steps = [tool_calls(("file_list", {}), before="a\ud83d"), text("b\ud83d", "\ude00", "\ud800")]
    history = [wire.user_message("from an import: \ud800")]
    with ScriptedServer(steps) as server:
        played = play(server.endpoint, history=history)
        outcome = await played.run()
    assert outcome.text == "b\U0001f600\ufffd"
    [listed] = played.of_type("tool_result")
    assert "bad-\\udcff.txt" in listed.text
    for event in played.of_type("stream_delta") + played.of_type("stream"):
        event.text.encode()


@pytest.mark.sandbox
async def test_a_sandboxed_command_has_the_limits_of_the_turn(play: Play, place: Place) -> None:
    command = "ulimit -H -d; ulimit -H -f; for i in $(seq 60); do sleep 600 & done; wait"
    limits = Limits(sandbox_memory_mb=512, sandbox_file_mb=3, sandbox_processes=40)
    view = workspace_view(place.root, place.global_folder)
    with ScriptedServer([tool_calls(("shell_exec", {"command": command})), text("")]) as server:
        played = play(server.endpoint, limits=limits, view=view, access="workspace")
        await played.run()
    [result] = played.of_type("tool_result")
    assert result.text.startswith(f"{512 * 1024}\n{3 * 1024}\n")
    assert "more than 40 processes" in result.text


async def test_a_command_knows_that_it_is_an_agents(play: Play) -> None:
    with ScriptedServer([tool_calls(("shell_exec", {"command": "echo $HALO_SESSION"})), text("")]) as server:
        played = play(server.endpoint)
        await played.run()
    assert played.of_type("tool_result")[0].text.startswith("s1\n")
