"""Compaction by a summary: when it is due, what stays, what is announced, and that failures change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic_ai import models

from agents import history as wire
from agents.abort import AbortToken
from agents.compaction import CLEARED, cut
from agents.context_size import context_tokens, estimate
from agents.events import Message, SystemNote
from agents.loop import compact_now
from agents.providers.testing import ScriptedServer, failure, hang, text, tool_calls
from agents.repair import repair
from agents.summary import ASK
from agents.turn import ContextRules

from .conftest import Place, Played
from .test_history import HISTORIES, assert_accepted

Play = Callable[..., Played]


def conversation(exchanges: int, *, size: int = 400) -> list[Message]:
    """Each exchange: a message, a tool call with its result, an answer."""
    history: list[Message] = []
    for n in range(exchanges):
        call = wire.tool_call_part(call_id=f"c{n}", tool="file_read", arguments={"path": f"{n}.md"})
        result = wire.tool_result_part(call_id=f"c{n}", tool="file_read", text=f"<{n}>" * size)
        history += [
            wire.user_message(f"question {n}"),
            wire.reply_message([call]),
            {"kind": "request", "parts": [result]},
            wire.reply_message([wire.text_part(f"answer {n}")]),
        ]
    return history


def notes(played: Played) -> list[str]:
    return [event.text for event in played.of_type("system")]


def rules(**changes: Any) -> ContextRules:
    return ContextRules(**{"max_tokens": 2_000, "keep_messages": 5, **changes})


async def test_a_full_context_is_summarised_before_the_call(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    with ScriptedServer([text("They asked six things."), text("Now this.")]) as server:
        played = play(server.endpoint, history=history, context=rules())
        outcome = await played.run()
    assert (outcome.status, outcome.text) == ("completed", "Now this.")
    asked, answered = server.requests
    assert asked["messages"][-1]["content"].startswith(ASK[:30])
    assert asked["messages"][0] == answered["messages"][0], "the system prompt stays, for the cache"
    assert asked["tools"] == answered["tools"]
    assert asked["messages"][1]["content"] == "question 0"
    sent = str(answered["messages"])
    assert "They asked six things." in sent and "question 0" not in sent and "and now?" in sent
    assert notes(played)[0].startswith("Compacting the conversation: 20 messages")
    assert notes(played)[1].startswith("Compacted: 20 messages became a summary, the last 5")
    assert len(notes(played)) == 2
    replaced = played.of_type("history_replaced")[-1]
    assert replaced.compacted
    assert replaced.messages[1:] == tuple(history[20:]), "word for word"
    assert all(a is b for a, b in zip(replaced.messages[1:], history[20:], strict=True))
    assert [event.call for event in played.of_type("stream_delta")] == [2], (
        "the summary isn't shown as a reply"
    )


async def test_what_has_room_is_left_alone(play: Play) -> None:
    with ScriptedServer([text("ok")]) as server:
        played = play(
            server.endpoint,
            history=[*conversation(6), wire.user_message("x")],
            context=rules(max_tokens=20_000),
        )
        await played.run()
    assert server.count == 1
    assert notes(played) == []


async def test_nobody_is_told_when_there_is_nothing_to_compact(play: Play) -> None:
    with ScriptedServer([text("ok")]) as server:
        played = play(server.endpoint, message="x" * 20_000, context=rules())
        assert (await played.run()).status == "completed"
    assert (server.count, notes(played)) == (1, [])


async def test_only_the_newest_of_the_kept_results_stays(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    with ScriptedServer([text("Summary."), text("ok")]) as server:
        played = play(server.endpoint, history=history, context=rules(keep_messages=9))
        await played.run()
    results = [m["content"] for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert results == [CLEARED, "<5>" * 400]


async def test_in_the_middle_of_a_turn_the_message_being_worked_on_stays(play: Play, place: Place) -> None:
    (place.root / "long.md").write_text("word " * 400)
    history = [*conversation(2, size=20), wire.user_message("[stamp] read it three times")]
    steps = [
        tool_calls(("file_read", {"path": "long.md", "limit": n}), usage=(300 * n, 5)) for n in (1, 2, 3)
    ]
    with ScriptedServer([*steps, text("I read it."), text("Done.")]) as server:
        played = play(server.endpoint, history=history, context=rules(max_tokens=1_500, keep_messages=2))
        assert (await played.run()).text == "Done."
    sent = [str(request["messages"]) for request in server.requests]
    assert all("[stamp] read it three times" in messages for messages in sent)
    assert "question 0" not in sent[-1] and "I read it." in sent[-1]
    assert len(played.turn.history) == 4, "the summary, the last call with its result, the answer"


async def test_a_failed_summary_changes_nothing_and_is_not_tried_again(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    steps = [failure(400, "no"), tool_calls(("file_read", {"path": "docs/guide.md"})), text("Now this.")]
    with ScriptedServer(steps) as server:
        played = play(server.endpoint, history=history, context=rules(max_tokens=1_000))
        outcome = await played.run()
    assert (outcome.status, server.count) == ("completed", 3)
    assert notes(played)[1:] == ["Compaction failed; the conversation is unchanged: no"]
    assert played.turn.history[: len(history)] == history


async def test_a_summary_that_fails_in_passing_is_tried_again(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    with ScriptedServer([failure(503, "busy"), text("Summary."), text("ok")]) as server:
        played = play(server.endpoint, history=history, context=rules())
        assert (await played.run()).status == "completed"
    assert notes(played)[-1].startswith("Compacted")


async def test_an_empty_summary_changes_nothing(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    call_only = tool_calls(("file_read", {"path": "docs/guide.md"}))
    with ScriptedServer([call_only, text("ok")]) as server:
        played = play(server.endpoint, history=history, context=rules())
        await played.run()
    assert "no summary" in notes(played)[1] and "unchanged" in notes(played)[1]
    assert played.turn.history[:-1] == history


async def test_a_summary_that_takes_too_long_is_given_up(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    with ScriptedServer([hang("Well"), text("ok")]) as server:
        played = play(server.endpoint, history=history, context=rules(summarize_timeout_sec=0.3))
        outcome = await played.run()
    assert outcome.status == "completed"
    assert "within 0.3 s" in notes(played)[1]
    assert played.turn.history[:-1] == history


async def test_stopping_a_compaction_ends_the_turn_with_the_history_unchanged(play: Play) -> None:
    history = [*conversation(6), wire.user_message("and now?")]
    with ScriptedServer([hang()]) as server:
        played = play(server.endpoint, history=history, context=rules())
        played.watchers.append(
            lambda event: (
                asyncio.get_running_loop().call_later(0.1, played.abort.abort)
                if isinstance(event, SystemNote)
                else None
            )
        )
        outcome = await played.run()
    assert outcome.status == "aborted"
    assert notes(played)[1] == "Compaction was stopped; the conversation is unchanged."
    assert played.turn.history == history


async def test_counting_goes_by_the_newest_reply_unless_a_summary_came_after_it() -> None:
    reply = wire.reply_message([wire.text_part("x")], usage={"input_tokens": 900, "output_tokens": 90})
    history = [*conversation(3), reply, wire.user_message("four")]
    assert context_tokens(history) == 990 + estimate(history[-1:])
    cached = wire.reply_message([wire.text_part("x")], usage={"input_tokens": 9})
    assert context_tokens([*conversation(3), cached]) == estimate([*conversation(3), cached]) // 2
    found = cut(history, keep=2)
    assert found is not None
    shorter = found.joined("Short.")
    assert shorter[1:] == history[-2:]
    assert context_tokens(shorter) == estimate(shorter) < 200
    fresh = wire.reply_message([wire.text_part("y")], usage={"input_tokens": 300})
    assert context_tokens([*shorter, fresh]) == 300


async def test_on_request(play: Play) -> None:
    with ScriptedServer([text("All of it.")]) as server, models.override_allow_model_requests(True):
        played = play(server.endpoint, history=conversation(3))
        assert await compact_now(played.turn, abort=AbortToken()) == ("compacted", "")
        assert played.saved == played.turn.history
        assert "All of it." in wire.message_text(played.turn.history[0])
        events = len(played.events)
        assert await compact_now(played.turn, abort=AbortToken()) == ("nothing_to_compact", "")
        assert len(played.events) == events, "and nothing is said"
    assert server.count == 1


async def test_a_model_that_can_not_be_used_is_named(play: Play) -> None:
    from agents.turn import ModelChoice

    played = play("", history=conversation(3), model=ModelChoice(provider="openai-compatible"))
    outcome, why = await compact_now(played.turn, abort=AbortToken())
    assert outcome == "failed" and "model.endpoint" in why
    assert len(played.turn.history) == 12


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
@settings(max_examples=60, deadline=None)
@given(history=HISTORIES)
def test_no_pair_is_split_and_the_newest_message_of_a_person_stays(keep: int, history: list[Any]) -> None:
    current = repair(history)
    spoken = [parts for message in current if (parts := wire.persons_parts(message))]
    for _ in range(3):
        found = cut(current, keep=keep)
        if found is None:
            return
        assert len(found.tail) >= min(keep, len(current))
        current = found.joined("Summary.")
        assert_accepted(current)
        kept = [parts for message in current if (parts := wire.persons_parts(message))]
        assert kept[-1:] == spoken[-1:]
        assert sum(map(wire.is_summary, current)) == 1
    raise AssertionError("it goes on compacting what is compacted")
