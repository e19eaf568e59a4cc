"""Markdown from a model: laid out, and unable to do anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_site.markdown import MAX_CHARS, to_html

_HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#x09;script:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "<javascript:alert(1)>",
    "![x](https://evil.example/a.png)",
    "![x][y]\n\n[y]: https://evil.example/a.png",
    "<iframe src=https://evil.example></iframe>",
    "<style>@import url(https://evil.example)</style>",
    '<div style="background:url(https://evil.example)">x</div>',
    "<form action=https://evil.example><button>x</button></form>",
    '<p x-data="{}" x-init="alert(1)" hx-get="https://evil.example">x</p>',
    "</div></main><h1>gone",
    "`<script>`\n\n```html\n<script>alert(1)</script>\n```",
    "<!-- --><script>alert(1)</script>",
    '```" onmouseover="alert(1)\nx\n```',
    '[x](https://a.example "\\" onmouseover=alert(1) \\"")',
]
_ALLOWED = frozenset(
    [
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "hr", "br", "blockquote", "pre", "ul", "ol", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *("a", "code", "del", "em", "s", "strong"),
    ]
)


class _Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_harmless(html: str) -> None:
    for tag, attributes in _Tags(html).found:
        assert tag in _ALLOWED, html
        assert set(attributes) <= {"href", "rel", "start"}, html
        if href := attributes.get("href"):
            assert re.match(r"(https?:|mailto:)|(?![a-z0-9+.-]*:)", href, re.IGNORECASE), html


@pytest.mark.parametrize("text", _HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    assert_harmless(to_html(text))


@given(st.lists(st.sampled_from([*_HOSTILE, "\n", "> ", "- ", "|", "*", "\0", "\u202e", "a"])).map("".join))
def test_nothing_grows_together_into_something_that_acts(text: str) -> None:
    assert_harmless(to_html(text))


def test_what_people_write_is_laid_out() -> None:
    html = to_html("# Title\n\n- **bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")

    assert "<h1>Title</h1>" in html
    assert "<strong>bold</strong> and <code>code</code>" in html
    assert "<td>2</td>" in html


def test_a_link_stays_and_tells_the_other_side_nothing() -> None:
    assert to_html("[docs](https://docs.example/a)") == (
        '<p><a href="https://docs.example/a" rel="noopener noreferrer nofollow">docs</a></p>\n'
    )


def test_raw_html_is_shown_as_it_was_written() -> None:
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in to_html("<script>alert(1)</script>")


def test_a_text_too_long_to_lay_out_is_shown_whole() -> None:
    html = to_html("<b>" + "x" * MAX_CHARS)

    assert html.startswith("<pre>&lt;b&gt;")
    assert html.count("x") == MAX_CHARS


def test_quotes_within_quotes_without_end_are_no_bomb() -> None:
    assert_harmless(to_html(">" * 50_000))
