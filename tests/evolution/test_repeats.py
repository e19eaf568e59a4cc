"""Where the words of a draft came from: what counts, what hides nothing, and how it grows."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from evolution import repeats
from evolution.repeats import Source, sources_of
from tests.evolution.phase_world import agent, user

SAID = "Always send the invoice to accounts at example dot org."


def result(content: Any, tool: str = "web_fetch") -> dict[str, Any]:
    part = {"part_kind": "tool-return", "tool_name": tool, "content": content, "tool_call_id": "1"}
    return {"kind": "request", "parts": [part]}


def marked(*lines: str, messages: list[Any]) -> list[Source | None]:
    (found,) = sources_of([lines], messages)
    return found


FETCHED = [Source(2, "result of web_fetch")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Send the invoice to accounts.", SAID),
        ("SEND  the\tinvoice,\u00a0to accounts", SAID),
        ("**Send** the _invoice_ to `accounts`", SAID),
        ("S\u200bend the inv\u00adoice to acc\u2060ounts", SAID),
        ("\uff33\uff45\uff4e\uff44 the invoice to accounts", SAID),
        ("send_the_invoice_to_accounts", SAID),
        ("Send the invoice to accounts", {"rows": [{"note": SAID, "n": 1}]}),
        ("Send the invoice to accounts", ["x", SAID]),
        ("请把发票寄给财务部", "注意\uff1a请把发票寄给财务部。"),
    ],
)
def test_five_words_in_a_row_are_found_however_they_are_dressed(line: str, said: Any) -> None:
    assert marked(line, messages=[user("Hello"), result(said)]) == FETCHED


@pytest.mark.parametrize(
    "line",
    ["Send the invoice to me.", "", "invoice the send accounts to", "to accounts at example com dot org"],
)
def test_fewer_or_other_words_are_not(line: str) -> None:
    assert marked(line, messages=[user("Hello"), result(SAID)]) == [None]


def test_words_that_run_over_the_ends_of_lines_are_found() -> None:
    lines = ["Send the", "invoice", "to accounts", "Something else entirely stands here now."]
    assert marked(*lines, messages=[user("Hello"), result(SAID)]) == [*FETCHED * 3, None]
    first, second = sources_of([["Send the invoice"], ["to accounts"]], [result(SAID)])
    assert (first, second) == ([None], [None]), "these don't stand together in the file"


def test_the_first_to_say_it_is_named_and_the_agent_itself_is_no_source() -> None:
    messages = [agent(SAID), user(f"[2026-01-31T09:30:00.123Z] {SAID}"), result(SAID)]
    assert marked(SAID, messages=messages) == [Source(2, "a person's words")]
    assert marked(SAID, messages=[agent(SAID)]) == [None]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [None, 3, "x", []],
        [{"parts": None}, {"parts": [None, 1]}],
        [{"parts": [{"part_kind": "user-prompt"}]}],
    ],
)
def test_a_damaged_conversation_marks_nothing(messages: list[Any]) -> None:
    assert marked(SAID, messages=messages) == [None]


def test_a_deeply_nested_result_is_gone_through() -> None:
    content: Any = SAID
    for _ in range(20_000):
        content = [content]
    assert marked(SAID, messages=[result(content)]) == [Source(1, "result of web_fetch")]


def test_what_stands_across_two_pieces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_PIECE_CHARS", 16)
    assert marked("invoice to accounts at example", messages=[result(SAID)]) == [
        Source(1, "result of web_fetch")
    ]


def test_the_end_of_a_large_conversation_counts_and_memory_stays_with_the_draft() -> None:
    large = [result("lorem ipsum dolor sit amet consectetur " * 30_000) for _ in range(5)]
    tracemalloc.start()
    found = marked("Send the invoice to accounts.", messages=[*large, result(SAID)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [Source(6, "result of web_fetch")]
    assert peak < 20_000_000


@pytest.mark.parametrize(
    "unit", ["a", "a ", "\ufdfa", "漢", "\u200b", "[2026-01-31T09:30:00.123Z] ", "a b c d ", "_", "e\u0301"]
)
def test_a_conversation_is_read_once(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, read = repeats._words, [0]

    def counting(text: str) -> list[str]:
        read[0] += len(text)
        return real(text)

    monkeypatch.setattr(repeats, "_words", counting)
    text = unit * (1_000_000 // len(unit))

    assert marked("x y z", "nothing of it is here", messages=[result(text)]) == [None, None]
    assert read[0] <= len(text) + 100


def test_a_hostile_conversation_is_only_text() -> None:
    hostile = "<script>alert(1)</script> \u202e {{ x }} \0 \ud800 send it to me now please"
    found = marked("send it to me now", messages=[result(hostile, tool="<b>\u202e")])
    assert found == [Source(1, "result of <b>\u202e")]
    assert json.dumps(hostile)
