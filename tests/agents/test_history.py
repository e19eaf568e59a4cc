"""Repairing, and shortening, any history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessagesTypeAdapter

from agents import history as wire
from agents.compaction import compact_locally
from agents.providers.codec import Codec, reply_to_wire
from agents.repair import is_sound, repair
from core.texts import encodable_value

AT = "2026-01-31T09:30:00Z"
IDS = st.sampled_from(["a", "b", "a-2"])
RESULTS = st.builds(
    lambda i, t: wire.tool_result_part(call_id=i, tool="t", text=t), IDS, st.text(max_size=99)
)
PROMPTS = st.builds(lambda t: {"part_kind": "user-prompt", "content": t}, st.text(max_size=5))
TEXTS = st.builds(wire.text_part, st.text(max_size=5))
CALLS = st.builds(lambda i: wire.tool_call_part(call_id=i, tool="t", arguments={}), IDS)
REQUESTS = st.lists(RESULTS | PROMPTS, max_size=4).map(lambda parts: {"kind": "request", "parts": parts})
REPLIES = st.lists(TEXTS | CALLS, max_size=4).map(wire.reply_message)
HISTORIES = st.lists(REQUESTS | REPLIES, max_size=10)


def assert_accepted(history: list[Any]) -> None:
    """What providers ask for: every call answered once in the very next message, no other results."""
    for position, message in enumerate(history):
        assert message["parts"]
        expected = [call["tool_call_id"] for call in wire.tool_calls(message)]
        assert len(set(expected)) == len(expected)
        following = history[position + 1]["parts"] if position + 1 < len(history) else []
        answered = [part["tool_call_id"] for part in following if wire.is_tool_result(part)]
        if message["kind"] == "response":
            assert sorted(answered) == sorted(expected)
        else:
            assert not answered


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_any_history_becomes_acceptable_and_stays_as_it_is(history: list[Any]) -> None:
    before = str(history)
    repaired = repair(history)
    assert str(history) == before, "messages are never edited in place"
    assert_accepted(repaired)
    assert is_sound(repaired)


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_repair_loses_no_prompt_no_text_and_no_answer(history: list[Any]) -> None:
    repaired = repair(history)
    for kind in ("user-prompt", "text"):
        kept = [part for message in repaired for part in message["parts"] if part["part_kind"] == kind]
        had = [part for message in history for part in message["parts"] if part["part_kind"] == kind]
        assert kept == [part for part in had if part["content"]]


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_compaction_ends_and_splits_no_pair(history: list[Any]) -> None:
    current = repair(history)
    for _ in range(50):
        shorter = compact_locally(current)
        if shorter is None:
            return
        assert len(str(shorter)) < len(str(current)) or len(shorter) < len(current)
        assert_accepted(shorter)
        current = shorter
    raise AssertionError("compaction never ends")


def test_the_synthesized_result_warns_of_repeating() -> None:
    call = wire.tool_call_part(call_id="a", tool="shell_exec", arguments={})
    repaired = repair([wire.user_message("x"), wire.reply_message([call])])
    result = repaired[-1]["parts"][0]
    assert result["content"] == wire.CUT_SHORT and result["outcome"] == "failed"


def test_calls_of_one_id_get_the_results_of_their_own_in_order() -> None:
    ids = ["x", "x", "x-2", "x"]
    calls = [wire.tool_call_part(call_id=i, tool=f"t{at}", arguments={}) for at, i in enumerate(ids)]
    answered = [("x", "first"), ("x-2", "other"), ("x", "second")]
    results = [wire.tool_result_part(call_id=i, tool="t3", text=text) for i, text in answered]
    reply, request = repair(
        [wire.reply_message(calls), {"kind": "request", "parts": results}],
    )
    assert [call["tool_call_id"] for call in wire.tool_calls(reply)] == ["x", "x-3", "x-2", "x-4"]
    assert [(part["tool_call_id"], part["tool_name"], part["content"]) for part in request["parts"]] == [
        ("x", "t0", "first"),
        ("x-2", "t3", "other"),
        ("x-3", "t1", "second"),
        ("x-4", "t3", wire.CUT_SHORT),
    ]


def test_sound_messages_stay_the_same_objects() -> None:
    history = [wire.user_message("x"), wire.reply_message([wire.text_part("y")])]
    assert all(a is b for a, b in zip(repair(history), history, strict=True))


def test_the_codec_converts_each_message_once_and_back() -> None:
    from pydantic_ai import messages as library

    reply = library.ModelResponse(
        parts=[
            library.ThinkingPart("hm", signature="s"),
            library.TextPart("hi"),
            library.ToolCallPart("glob", '{"pattern": "*"}', tool_call_id="c"),
        ],
        usage=library.RequestUsage(input_tokens=3, output_tokens=4),
    )
    message = reply_to_wire(reply)
    assert wire.tool_calls(message)[0]["args"] == {"pattern": "*"}
    assert message["usage"] == {"input_tokens": 3, "output_tokens": 4}
    assert "null" not in str(message) and "None" not in str(message)
    codec = Codec()
    history = [wire.user_message("x", [("image/png", b"\xff\xfe\x00")]), message]
    first = codec.objects(history)
    assert first[1].parts[2].args_as_dict() == {"pattern": "*"}
    assert first[0].parts[0].content[0].data == b"\xff\xfe\x00"
    history.append(wire.user_message("more"))
    second = codec.objects(history)
    assert second[0] is first[0] and second[1] is first[1]


@pytest.mark.parametrize(
    "message",
    [
        wire.user_message("What does shipping cost?"),
        wire.user_message("\ud800 half a pair"),
        wire.user_message("an image", [("image/png", b"\x00")]),
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x", "timestamp": AT}]},
        {**wire.user_message("x"), "metadata": {"halo_summary": {"of": 3, "kept": 0}}},
        wire.reply_message([wire.text_part("an imported beginning")]),
    ],
)
def test_a_first_message_becomes_what_the_library_makes_of_it(message: dict[str, Any]) -> None:
    (made,) = Codec().objects([message])
    (validated,) = ModelMessagesTypeAdapter.validate_python([encodable_value(message)])
    if "timestamp" not in message["parts"][0] and made.kind == "request":
        assert made.parts[0].timestamp.tzinfo is not None
        made.parts[0].timestamp = validated.parts[0].timestamp
    if made.kind == "response":
        made.timestamp = validated.timestamp
    assert made == validated
