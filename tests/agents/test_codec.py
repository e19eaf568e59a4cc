"""From the log's messages to the library's, also of messages that somebody wrote into the log."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart

from agents import history as wire
from agents.providers.codec import NOT_UNDERSTOOD, Codec

CALL = {"part_kind": "tool-call", "tool_name": "glob", "tool_call_id": "c", "args": {"pattern": "*"}}
RESULT = {"part_kind": "tool-return", "tool_name": "glob", "tool_call_id": "c", "content": "a.py"}


def told(message: wire.Message) -> list[tuple[str, Any]]:
    (converted,) = Codec().objects([message])
    return [
        (part.part_kind, part.args if isinstance(part, ToolCallPart) else part.content)  # type: ignore[union-attr]
        for part in converted.parts
    ]


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({"part_kind": "user-prompt", "content": "x", "timestamp": "never"}, ("user-prompt", "x")),
        ({"part_kind": "user-prompt", "content": ["x", {"kind": "binary"}, "y"]}, ("user-prompt", "x\ny")),
        ({**RESULT, "timestamp": []}, ("tool-return", "a.py")),
        ({"part_kind": "of tomorrow"}, ("user-prompt", NOT_UNDERSTOOD)),
        ({"part_kind": "text", "content": "a reply's"}, ("user-prompt", NOT_UNDERSTOOD)),
    ],
)
def test_of_an_odd_request_what_can_be_told_is_sent(part: wire.Part, kept: tuple[str, Any]) -> None:
    """It ended every turn of its session, with the library's own words."""
    said = {"part_kind": "user-prompt", "content": "before"}
    assert told({"kind": "request", "parts": [said, part]}) == [("user-prompt", "before"), kept]


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({**CALL, "args": 5}, ("tool-call", {})),
        ({**CALL, "id": []}, ("tool-call", {"pattern": "*"})),
        ({"part_kind": "text", "content": "x", "id": 5}, ("text", "x")),
        ({"part_kind": "of tomorrow"}, ("text", NOT_UNDERSTOOD)),
    ],
)
def test_of_an_odd_reply_what_can_be_told_is_sent(part: wire.Part, kept: tuple[str, Any]) -> None:
    assert told({"kind": "response", "parts": [part], "timestamp": "never", "usage": 5}) == [kept]


def test_its_neighbours_are_sent_as_they_are_and_converted_once() -> None:
    codec = Codec()
    history = [
        wire.user_message("one"),
        {"kind": "request", "parts": [{"part_kind": "of tomorrow"}]},
        wire.reply_message([wire.text_part("two")]),
    ]
    first = codec.objects(history)
    assert [type(message).__name__ for message in first] == ["ModelRequest", "ModelRequest", "ModelResponse"]
    assert [part.content for message in first for part in message.parts] == ["one", NOT_UNDERSTOOD, "two"]
    assert all(a is b for a, b in zip(first, codec.objects(history), strict=True))
