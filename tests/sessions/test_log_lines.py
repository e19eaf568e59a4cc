"""Bytes to records: a file read in one go holds exactly what its lines hold each on its own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.logs.lines import scan

DROP = b'{"t":"drop","id":"a"}'

RECORDS = [
    DROP,
    b'{"t":"of a later version"}',
    b'{"t":"set","id":"a","field":"x","value":"\\ud800 \xe2\x80\xa8 \\n"}',
    b'{"t":"set","id":"a","field":"x","value":[NaN,1e999,-0]}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[{"part_kind":"text","content":"x","tool_call_id":null}]}}',
    b'{"t":"part","n":0,"p":{"part_kind":"tool-return","tool_call_id":"c","tool_name":"grep"},"e":5}',
    b'{"t":"add","row":{"id":"a","role":"assistant","blocks":[{}]},"seq":7}',
    b' {"t":"drop","id":"a"}',
    b'{"t":"drop","id":"a"}\r',
]
NO_RECORDS = [
    b"",
    b"{}",
    b"[]",
    b"5",
    b'{"t":"drop","id":',
    b'"a"}',
    b'{"t":"late","records":[{}',
    b",",
    b"{}]}",
    DROP + DROP,
    DROP + b",",
    DROP + b" x",
    b'{"t":"drop","id":"a\0"}',
    b'{"t":"drop","id":"\xff"}',
    b'{"t":"drop"}',
    b'{"t":"drop","id":["a"]}',
    b'{"t":"add","row":null}',
    b'{"t":"add","row":"id role"}',
    b'{"t":"add","row":{"id":"a","role":"assistant"}}',
    b'{"t":"inflight","id":"a"}',
    b'{"t":"set","id":"a","field":["x"]}',
    b'{"t":"late","records":[[]]}',
    b'{"t":"head","seq":1}',
    b'{"t":"head","seq":1,"archived":true}',
    b'{"t":"msg","n":0}',
    b'{"t":"msg","n":0,"m":[]}',
    b'{"t":"msg","n":0,"m":"kind parts"}',
    b'{"t":"msg","n":0,"m":{"kind":["request"],"parts":[]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":["part_kind"]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[{}]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[{"part_kind":["text"]}]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[{"part_kind":"text","content":"x","tool_call_id":5}]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[{"part_kind":"tool-call","tool_call_id":"c"}]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[{"part_kind":"text"}]}}',
    b'{"t":"msg","n":0,"m":{"kind":"request","parts":[]},"rows":null}',
    b'{"t":"msg","n":true,"m":{"kind":"request","parts":[]}}',
    b'{"t":"part","n":0,"p":"part_kind"}',
    b'{"t":"part","p":{"part_kind":"text","content":"x"}}',
    b'{"t":"set","id":"a","field":"x","value":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]


@given(
    st.lists(st.sampled_from([*RECORDS, *NO_RECORDS]) | st.binary().filter(lambda line: b"\n" not in line))
)
def test_every_line_is_read_as_if_it_stood_alone(lines: list[bytes]) -> None:
    found = scan(b"".join(line + b"\n" for line in lines))
    alone = [scan(line + b"\n") for line in lines]
    assert found.records == [record for line in alone for record in line.records]
    assert [damage.data for damage in found.damages] == [d.data for line in alone for d in line.damages]


@pytest.mark.parametrize("line", RECORDS)
def test_a_record_is_read_beside_others(line: bytes) -> None:
    found = scan(DROP + b"\n" + line + b"\n" + DROP + b"\n")
    assert (len(found.records), found.damages) == (3, [])


@pytest.mark.parametrize("line", NO_RECORDS)
def test_what_is_no_record_is_named_where_it_stands(line: bytes) -> None:
    found = scan(DROP + b"\n" + line + b"\n" + DROP + b"\n")
    assert [record["t"] for record in found.records] == ["drop", "drop"]
    assert [(damage.offset, damage.data, damage.before) for damage in found.damages] == [
        (len(DROP) + 1, line, 1)
    ]


def test_two_lines_that_make_one_record_together_are_two_damages() -> None:
    """Not even when a third line holds two, so that the numbers of lines and of documents are the same."""
    lines = [b'{"t":"drop",', b'"id":"a"}', DROP + DROP]
    found = scan(b"\n".join(lines) + b"\n")
    assert found.records == []
    assert [damage.data for damage in found.damages] == lines


@given(st.lists(st.text()), st.binary())
def test_texts_come_back_as_they_were_written_and_a_torn_end_is_told(texts: list[str], torn: bytes) -> None:
    torn = torn.replace(b"\n", b"")
    records = [{"t": "set", "id": "a", "field": "x", "value": text} for text in texts]
    data = b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)
    found = scan(data + torn)
    assert (found.records, found.damages) == (records, [])
    assert (found.good_end, found.torn) == (len(data), len(torn))
