"""YAML from a hostile hand: read or refused with the line, never a hang, never another exception."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from core.safe_yaml import MAX_BYTES, YamlError, load, unshared


def bomb(levels: int) -> bytes:
    rows = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(rows).encode()


def merge_bomb(levels: int) -> bytes:
    rows = ["a0: &a0 {x: 1}"]
    rows += [f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, levels)]
    return "\n".join(rows).encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (bomb(12), "expand"),
        (merge_bomb(12), "expand"),
        (b"a: &a [*a]", "contains itself"),
        (b"[" * 5000, "nest"),
        (b"- " * 5000 + b"x", "nested deeper"),
        (b"x" * (MAX_BYTES + 1), "bytes long"),
        (b"a: \xff", "not UTF-8"),
        (b"a: \x00", "not allowed"),
        (b"a: !!python/object/apply:os.system ['true']", "constructor"),
        (b"a: 1\n---\nb: 2", "another document"),
        (b"a: " + b"9" * 5000, "more than 100 characters"),
        (b"a: 2001-99-99", "can't be read"),
        (b"? [a]\n: b", "unhashable"),
    ],
)
def test_hostile_text_is_refused_with_a_reason(data: bytes, problem: str) -> None:
    with pytest.raises(YamlError, match=problem):
        load(data)


def test_the_line_of_a_colon_in_a_description_is_named() -> None:
    with pytest.raises(YamlError) as caught:
        load(b"name: greet\ndescription: says: hello\n")
    assert caught.value.line == 2


def test_lines_and_repeated_keys_are_noted() -> None:
    document = load(b"a: 1\nb:\n  c: 1\n  c: 2\n  d: [x, y]\na: 1\n")
    assert document.value == {"a": 1, "b": {"c": 2, "d": ["x", "y"]}}
    assert document.line("b", "d", "1") == 5
    assert document.line("b", "d", "nothing", "there") == 5
    assert [(r.path, r.line, r.conflicting) for r in document.repeated] == [
        (("b", "c"), 4, True),
        (("a",), 6, False),
    ]


def test_few_aliases_are_fine_and_can_be_unshared() -> None:
    value = load(b"a: &x {n: 1}\nb: *x\n").value
    copy = unshared(value)
    copy["a"]["n"] = 2
    assert copy["b"]["n"] == 1


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(YamlError):
        load(data)


@given(st.text(alphabet="ab:-[]{}&*<>!|#'\"? \n\t,\u202e", max_size=80))
def test_what_is_read_is_what_safe_load_reads(text: str) -> None:
    try:
        ours = load(text.encode()).value
    except YamlError:
        return
    assert ours == yaml.load(text, Loader=yaml.CSafeLoader)


def test_a_number_that_can_not_be_printed_again_is_refused() -> None:
    with pytest.raises(YamlError, match="line 2: a number of more than 100 characters"):
        load(b"a: 1\nb: 0x" + b"f" * 10_000)
