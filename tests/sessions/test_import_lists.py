"""Message lists and Halo 1.x files become sessions; whatever isn't one is named by its line, and nothing is left."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import history as wire
from agents.repair import is_sound
from sessions_app.import_session import import_session
from sessions_app.importers import FORMATS, ImportFailed, parse
from sessions_app.importers.building import Stamps
from sessions_app.importers.message_file import read_messages
from sessions_app.logs import read_session
from sessions_app.logs.agreement import results_of
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from tests.sessions.conftest import NOW
from tests.sessions.test_import import PIXEL
from workspaces.models import Workspace

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "You help."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Look"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}},
            {"id": "c2", "type": "function", "function": {"name": "cat", "arguments": "not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "words"}]},
    {"role": "assistant", "content": "It is a.txt."},
]
ANTHROPIC: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "text", "text": "Look"},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
            {"type": "tool_use", "id": "c2", "name": "cat", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c2", "content": "words", "is_error": True},
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.txt"}]},
            {"type": "text", "text": "and be quick"},
        ],
    },
    {"role": "assistant", "content": "It is a.txt."},
]
V1: dict[str, Any] = {
    "id": "abc",
    "agentId": "helper",
    "title": "From long ago",
    "exchangeCount": 2,
    "messages": [
        {"role": "user", "content": "Look", "deleted": True},
        {"role": "assistant", "content": "Fine."},
    ],
    "rawMessages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[2024-05-06T07:08:09.010Z] Look"},
                {"type": "text", "text": "[2024-05-06T07:08:09.020Z] and there"},
            ],
        },
        *ANTHROPIC[1:],
    ],
}


def as_array(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps(messages, indent=2).encode()


def as_object(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "x", "messages": messages}).encode()


def as_lines(messages: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(message) + "\n" for message in messages).encode()


def spoken(data: bytes, format: str = "auto") -> list[str]:
    return [
        f"{part['part_kind']}:{wire_text(part)}"
        for message in parse(data, format=format).messages
        for part in message["parts"]
    ]


def wire_text(part: dict[str, Any]) -> str:
    content = part.get("content")
    text = content if isinstance(content, str) else (content or [part.get("args")])[-1]
    return str(text).rsplit("Z] ", 1)[-1]


@pytest.mark.parametrize("written", [as_array, as_object, as_lines])
def test_openai_lists_with_calls_results_and_images(written: Any) -> None:
    imported = parse(written(OPENAI))
    assert spoken(written(OPENAI)) == [
        "user-prompt:Look",
        "tool-call:{'path': '.'}",
        "tool-call:{'input': 'not json'}",
        "tool-return:a.txt",
        "tool-return:words",
        "text:It is a.txt.",
    ]
    assert imported.left_out == {"system prompt": 1}
    assert imported.rows[0]["images"][0]["media_type"] == "image/png"
    assert [part["tool_name"] for part in imported.messages[2]["parts"]] == ["ls", "cat"]
    assert is_sound(imported.messages)


def test_the_older_function_calls_are_matched_by_name() -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}},
        {"role": "function", "name": "ls", "content": "a.txt"},
    ]
    assert spoken(as_array(said))[-1] == "tool-return:a.txt"


@pytest.mark.parametrize("written", [as_array, as_object, as_lines])
def test_anthropic_lists_with_calls_results_and_images(written: Any) -> None:
    imported = parse(written(ANTHROPIC))
    assert spoken(written(ANTHROPIC))[1:] == [
        "thinking:hm",
        "tool-call:{'path': '.'}",
        "tool-call:{}",
        "tool-return:words",
        "tool-return:a.txt",
        "user-prompt:and be quick",
        "text:It is a.txt.",
    ]
    calls = [block for block in imported.rows[1]["blocks"] if block["type"] == "tool_call"]
    assert [call["result"]["is_error"] for call in calls] == [False, True]


def test_a_file_of_halo_1_keeps_its_stamps_and_title() -> None:
    imported = parse(json.dumps(V1).encode())
    assert imported.title == "From long ago"
    assert [row["stamp"] for row in imported.rows if row["role"] == "user"][:2] == [
        "2024-05-06T07:08:09.010Z",
        "2024-05-06T07:08:09.020Z",
    ]
    assert imported.left_out == {"row that was deleted": 1}
    shown_alone = json.dumps({**V1, "rawMessages": []}).encode()
    assert [text.split(":", 1)[1] for text in spoken(shown_alone, "halo-v1")] == ["Look", "Fine."]


def test_stamps_that_are_none_and_repeated_ones_get_new_ones() -> None:
    said = [
        {"role": "user", "content": "[9999-99-99T99:99:99.999Z] odd"},
        {"role": "user", "content": "[2024-05-06T07:08:09.010Z] one"},
        {"role": "user", "content": "[2024-05-06T07:08:09.010Z] two"},
    ]
    rows = parse(as_array(said)).rows
    assert len({row["stamp"] for row in rows}) == 3
    assert all(row["stamp"] < "2025" for row in rows)


@pytest.mark.parametrize("data", [as_array(OPENAI), as_array(ANTHROPIC), json.dumps(V1).encode()])
def test_it_becomes_a_session_whose_logs_agree_and_that_the_model_library_takes(
    workspace: Workspace, data: bytes
) -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    outcome = import_session(data=data, workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW)
    assert outcome.session.outside_data_at == NOW
    assert outcome.session.access_level == "workspace"
    ui, raw = read_session(log_folder(outcome.session), log_leaf(outcome.session))
    assert not any(row.get("restored") or row.get("lost") for row in ui.rows)
    assert len(ModelMessagesTypeAdapter.validate_python(raw.messages)) == len(raw.messages)


BAD: list[tuple[bytes, str]] = [
    (b'[\n{"role":"user","content":"a"},\n{"role":"user","content":"b"', "line 3: not JSON"),
    (b'[\n{"role":"user","content":"a"}\n{"role":"user","content":"b"}]', "line 3: not JSON \\(a comma"),
    (b'[\n{"role":"user","content":"a"},\n7]', "line 3: a message"),
    (b'[{"role":"user","content":"a"}]\n\n[]', "line 3: something stands behind"),
    (b'{"role":"user","content":"a"}\n{"role":"king","content":"b"}\n', "line 2: the role 'king'"),
    (b'{"role":"user","content":"a"}\n{"role":"user","content":7}\n', "line 2: the content"),
    (b'{"role":"user","content":"a"}\nno\n', "line 2: not JSON"),
    (b'{"role":"user","content":"a"}\n{"role":"user","content":"\xff"}\n', "line 2: not UTF-8"),
    (b'{"role":"user","content":"a\0"}\n', "line 1: not JSON"),
    (
        b'{"messages":[\n{"role":"user","content":"a"},\n{"role":"user","content":[1]}]}',
        "line 3: the content",
    ),
    (b'{"messages":[{"role":"user","content":"a"}]}\n{"messages":[]}', "line 1: several conversations"),
    (b'[\n{"role":"assistant","content":"a"}\n]', "line 3: the file ends without any message of a person"),
    (b'[\n{"role":"user","content":' + b"[" * 100_000 + b"]}]", "line 2: not JSON"),
    (
        b'[\n{"role":"user","x":' + b"[" * 200 + b"]" * 200 + b',"content":"a"}]',
        "line 2: nested deeper than 64",
    ),
    (b'[\n{"role":"user","content":"a","n":' + b"9" * 10_000 + b"}]", "line 2: not JSON"),
    (b'[\n{"role":"assistant","content":"a","tool_calls":7}]', "line 2: tool_calls"),
]


@pytest.mark.parametrize(("data", "says"), BAD)
@pytest.mark.parametrize("format", ["openai", "auto"])
def test_what_does_not_parse_names_the_line_and_leaves_nothing(
    workspace: Workspace, data: bytes, says: str, format: str
) -> None:
    with pytest.raises(ImportFailed, match=f"^{says}"):
        import_session(
            data=data, workspace=workspace, agent_id="helper", agent_name="Helper", format=format, now=NOW
        )
    assert not Session.objects.exists()
    assert [path.name for path in workspace.paths.sessions.rglob("*") if path.is_file()] == []


def test_a_message_of_ten_megabytes_and_line_separators_are_text(workspace: Workspace) -> None:
    long = "x\u2028y\u202e\u200b" * 2_000_000
    data = as_array([{"role": "user", "content": long}, {"role": "assistant", "content": "ok"}])
    outcome = import_session(data=data, workspace=workspace, agent_id="helper", agent_name="Helper", now=NOW)
    raw = read_session(log_folder(outcome.session), log_leaf(outcome.session))[1]
    assert raw.messages[0]["parts"][0]["content"].endswith(long)
    assert len(outcome.session.title) <= 60


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "id", "name", "input", "source", "content", "tool_use_id", "function"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": JSON},
            optional={"tool_calls": JSON, "tool_call_id": JSON, "function_call": JSON, "refusal": JSON},
        ),
        max_size=5,
    ),
    st.sampled_from(sorted(FORMATS)),
)
def test_odd_messages_are_imported_soundly_or_refused(messages: list[dict[str, Any]], format: str) -> None:
    try:
        imported = parse(as_array(messages), format=format)
    except ImportFailed:
        return
    assert is_sound(imported.messages)
    assert len(imported.messages) == len(imported.rows_of)
    ids = [row["id"] for row in imported.rows]
    assert len(set(ids)) == len(ids)


def test_lines_are_counted_once_through_a_long_file() -> None:
    messages = [{"role": "user", "content": f"{n}\n"} for n in range(20_000)]
    found = read_messages(as_array(messages))
    assert (len(found.messages), found.messages[-1].line) == (20_000, 2 + 4 * 19_999)


def test_results_are_looked_for_behind_replies_alone() -> None:
    """Behind every message of a person they used to be looked for as well, to the next reply."""

    class Counted(list[dict[str, Any]]):
        looked_at = 0

        def __getitem__(self, place: Any) -> Any:
            self.looked_at += 1
            return super().__getitem__(place)

    question = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x"}]}
    call = {"part_kind": "tool-call", "tool_name": "f", "tool_call_id": "c", "args": {}}
    answer = {"part_kind": "tool-return", "tool_name": "f", "tool_call_id": "c", "content": "found"}
    said = [{"kind": "response", "parts": [call]}, {"kind": "request", "parts": [answer]}]
    messages = Counted([*[question] * 1_000, *said])
    assert [results_of(messages, place) for place in range(1_000)] == [{}] * 1_000
    assert messages.looked_at == 1_000
    assert results_of(messages, 1_000)["c"]["text"] == "found"


EXTREMES = ("0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z")


@pytest.mark.parametrize("stamp", EXTREMES)
def test_a_stamp_beside_which_there_is_no_other_is_text(stamp: str) -> None:
    said = [{"role": "user", "content": f"[{stamp}] one"}, {"role": "user", "content": "two"}]
    rows = parse(as_array(said)).rows
    assert [row["text"] for row in rows] == [f"[{stamp}] one", "two"]
    assert [row["stamp"] for row in rows] == ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z"]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('{"a": "\\ud800"}', {"a": "\N{REPLACEMENT CHARACTER}"}),
        ('{"a": NaN, "b": [1e999, -Infinity]}', {"a": "NaN", "b": ["Infinity", "-Infinity"]}),
        ('{"a":' * 65 + "1" + "}" * 65, {"input": '{"a":' * 65 + "1" + "}" * 65}),
    ],
    ids=["surrogate", "no numbers", "deep"],
)
def test_arguments_written_as_text_are_held_to_what_the_file_is(written: str, kept: dict[str, Any]) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": written}}
    imported = parse(
        as_array([{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}])
    )
    (part,) = imported.messages[1]["parts"]
    assert part["args"] == kept
    for value in (*imported.messages, *imported.rows):
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def test_a_number_that_json_has_no_name_for_is_a_word() -> None:
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": float("nan")}}
    said: list[dict[str, Any]] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": [block]}]
    (part,) = parse(as_array(said)).messages[1]["parts"]
    assert part["args"] == {"a": "NaN"}


def test_a_list_of_the_same_name_deeper_in_the_file_is_not_the_conversation() -> None:
    around = {
        "meta": {"messages": [1]},
        "text": '"messages": [2]',
        "messages": [{"role": "user", "content": "x"}],
    }
    assert [row["text"] for row in parse(json.dumps(around).encode()).rows] == ["x"]
    broken = json.dumps(
        {"meta": {"messages": []}, "messages": [{"role": "user", "content": "x"}, 3]}, indent=0
    )
    with pytest.raises(ImportFailed, match="line 10: a message"):
        parse(broken.encode(), format="openai")


def test_results_are_shown_with_their_own_calls_when_every_reply_uses_the_same_ids() -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": "x"}]
    for words in ("first", "second"):
        call = {"id": "call_0", "function": {"name": "f", "arguments": "{}"}}
        said += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0", "content": words},
        ]
    said.append({"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": "f"}}]})
    results = [row["blocks"][0]["result"] for row in parse(as_array(said)).rows[1:]]
    assert [result["text"] for result in results[:2]] == ["first", "second"]
    assert results[2]["is_error"]


def test_calls_of_one_reply_that_share_an_id_keep_a_result_each() -> None:
    call = {"id": "call_0", "function": {"name": "f", "arguments": "{}"}}
    imported = parse(
        as_array(
            [
                {"role": "user", "content": "x"},
                {"role": "assistant", "tool_calls": [call, call, call]},
                {"role": "tool", "tool_call_id": "call_0", "content": "first"},
                {"role": "tool", "tool_call_id": "call_0", "content": "second"},
            ]
        )
    )
    assert is_sound(imported.messages)
    blocks = imported.rows[-1]["blocks"]
    assert [block["call_id"] for block in blocks] == ["call_0", "call_0-2", "call_0-3"]
    assert [block["result"]["text"] for block in blocks] == ["first", "second", wire.CUT_SHORT]


def test_stamps_of_one_moment_are_counted_on_and_not_searched_anew() -> None:
    given = Stamps()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for count in range(3_000):
        given.prompt_parts([str(count)], moment)
    steps = 0

    class Counted(dict[int, int]):
        def __getitem__(self, key: int) -> int:
            nonlocal steps
            steps += 1
            return super().__getitem__(key)

    given._behind = Counted(given._behind)
    (part,) = given.prompt_parts(["last"], moment)
    assert part["content"] == "[2026-01-01T00:00:03.000Z] last"
    assert steps < 10
