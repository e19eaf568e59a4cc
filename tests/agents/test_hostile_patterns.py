"""Patterns that would keep Python's expressions busy for ever: they neither hold the process nor go on."""

from __future__ import annotations

import fnmatch
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.tools.context import ToolContext, ToolError
from agents.tools.glob import glob
from agents.tools.glob_pattern import GlobPattern
from agents.tools.grep import grep
from agents.tools.line_search import LineSearch, TakesTooLong
from agents.views import full_view

from .conftest import Place

HOSTILE = "(a+)+$"
LINE = "a" * 60 + "b"


@pytest.fixture(autouse=True)
def no_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.shell.ripgrep", lambda view: None)


def context(place: Place, **more: object) -> ToolContext:
    view = full_view(place.root, global_folder=place.global_folder)
    return ToolContext(view=view, **more)  # type: ignore[arg-type]


def search(**more: object) -> LineSearch:
    values = {"ignore_case": False, "line_chars": 300, "is_aborted": lambda: False, **more}
    return LineSearch(HOSTILE, **values)  # type: ignore[arg-type]


def test_a_search_ends_when_its_time_is_spent() -> None:
    with search(seconds=1.0) as hostile:
        assert hostile.lines(b"aaa", at_most=10) == [(1, "aaa")]
        with pytest.raises(TakesTooLong):
            hostile.lines(LINE.encode(), at_most=10)
        child = hostile._child
    assert child.returncode is not None, "nothing of it runs on"


def test_a_search_ends_at_an_abort_and_other_threads_run_on_meanwhile(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.root / "hostile.txt").write_text(LINE)
    begun, aborted = threading.Event(), threading.Event()
    errors: list[str] = []
    whole = LineSearch._read_line

    def read_line(self: LineSearch) -> bytes:
        if hasattr(self, "complaint"):
            begun.set()
        return whole(self)

    def run() -> None:
        try:
            grep(context(place, is_aborted=aborted.is_set), HOSTILE, "hostile.txt")
        except ToolError as error:
            errors.append(str(error))

    monkeypatch.setattr(LineSearch, "_read_line", read_line)
    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(30), "this thread runs on"
    assert thread.is_alive(), "it is still at it"
    aborted.set()
    thread.join(30)
    assert not thread.is_alive()
    assert "takes too long" in errors[0] and "hostile.txt" in errors[0]


def test_what_no_expression_can_be_is_told() -> None:
    with LineSearch("(", ignore_case=False, line_chars=9, is_aborted=lambda: False) as bad:
        assert "unterminated" in bad.complaint


def test_many_stars_over_a_long_name_take_no_time(place: Place) -> None:
    (place.root / ("a" * 250)).write_text("")
    pattern = "*a" * 100 + "b"

    assert glob(context(place), pattern).startswith("[no file")
    assert grep(context(place), "x", include=pattern).startswith("[nothing")
    deep = "/".join("a" * 100)
    assert not GlobPattern("/".join(["**/a"] * 100) + "/b").matches(deep)
    assert GlobPattern("/".join(["**/a"] * 50)).matches(deep)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.md", ["a.md", "x/y/a.md", ".md"], ["a.mdx", "a.md/b"]),
        ("docs/*.md", ["docs/a.md"], ["docs/x/a.md", "x/docs/a.md"]),
        ("docs/**", ["docs/a", "docs/x/a"], ["docs", "a/docs"]),
        ("**/a/**/b", ["a/b", "x/a/y/z/b"], ["a/x", "b"]),
        ("**", ["a", "a/b"], []),
        ("{a,b/c}.txt", ["a.txt", "b/c.txt"], ["b.txt", "a/c.txt"]),
        ("x{a,{b,c}d}", ["xa", "xbd", "xcd", "y/xa"], ["xd", "xb"]),
        ("{a", ["{a"], ["a"]),
        ("a}", ["a}"], ["a"]),
        ("[ab]?", ["ax", "b-"], ["cx", "a"]),
        ("[!a]*", ["b", "bcd"], ["a", "ab"]),
        ("[a-c].x", ["b.x"], ["d.x"]),
        ("[", ["["], ["a"]),
        ("a*b*c", ["abc", "aXbXc", "abbcc"], ["ab", "acb", "abcd"]),
        ("*ab", ["ab", "aab", "abab"], ["aba"]),
        ("a\n*", ["a\nb", "a\n"], ["a"]),
    ],
)
def test_what_a_pattern_means(pattern: str, yes: list[str], no: list[str]) -> None:
    wanted = GlobPattern(pattern)
    assert [path for path in yes if not wanted.matches(path)] == []
    assert [path for path in no if wanted.matches(path)] == []


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_within_a_name_it_means_what_everybody_means(pattern: str, name: str) -> None:
    if "**" not in pattern and pattern:
        assert GlobPattern(pattern).matches(name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize("pattern", ["x" * 1_001, "{a,b}" * 8, "[z-a]"])
def test_a_pattern_that_can_not_be_one_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError):
        GlobPattern(pattern)
