"""A ui log read as it grows: each record once, and a file that isn't the same any more is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.logs.records import Record, add, encode, system_row
from sessions_app.logs.tail import LogRewrittenError, Tail


def record(seq: int, *, epoch: int = 0) -> Record:
    return {**add(system_row(row_id=f"r{seq}", at="", kind="note", text="\u2028")), "seq": seq, "e": epoch}


def seqs(tail: Tail) -> list[int]:
    return [found["seq"] for found in tail.read()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.ui.jsonl"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def test_what_is_appended_is_read_once(path: Path) -> None:
    tail = Tail(path)
    assert seqs(tail) == []
    append(path, encode([record(1), record(2)]))
    assert seqs(tail) == [1, 2]
    assert seqs(tail) == []
    append(path, encode([record(3)]))
    assert (seqs(tail), tail.seq) == ([3], 3)


@given(cuts=st.lists(st.integers(0, 400), max_size=8))
def test_however_the_writes_arrive(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    path = tmp_path_factory.mktemp("log") / "s.ui.jsonl"
    data = encode([record(n) for n in range(1, 6)])
    tail, found, start = Tail(path), [], 0
    for end in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        append(path, data[start:end])
        found += seqs(tail)
        start = end
    assert found == [1, 2, 3, 4, 5]


def test_a_succeeded_writers_records_are_left_out(path: Path) -> None:
    tail = Tail(path)
    append(path, encode([record(1, epoch=2), record(2, epoch=1), {"t": "late", "e": 2, "records": []}]))
    assert seqs(tail) == [1]
    append(path, encode([record(2, epoch=2), record(2, epoch=2)]))
    assert seqs(tail) == [2]


def test_damage_that_was_there_is_passed_over_and_new_damage_is_told(path: Path) -> None:
    append(path, b"{broken\n" + encode([record(1)]))
    tail = Tail(path)
    assert seqs(tail) == [1]
    append(path, b"\0\0\0\n")
    with pytest.raises(LogRewrittenError):
        tail.read()


def test_a_file_in_its_place_is_noticed_whatever_is_in_it(path: Path) -> None:
    append(path, encode([record(1)]))
    tail = Tail(path)
    assert seqs(tail) == [1]
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").rename(path)
    with pytest.raises(LogRewrittenError):
        tail.read()


def test_a_file_that_was_cut_and_one_that_is_gone_are_noticed(path: Path) -> None:
    append(path, encode([record(1), record(2)]))
    cut, gone = Tail(path), Tail(path)
    assert (seqs(cut), seqs(gone)) == ([1, 2], [1, 2])
    path.write_bytes(encode([record(1)]))
    with pytest.raises(LogRewrittenError):
        cut.read()
    path.unlink()
    with pytest.raises(LogRewrittenError):
        gone.read()
