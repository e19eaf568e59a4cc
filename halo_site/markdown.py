"""Markdown of models and people as HTML that can't act: no script, nothing loaded from anywhere, no raw HTML.

Two lines hold it: the parser knows no HTML and no images, and what it makes is cleaned by a list of what may
stay. The content security policy is a third.
"""

from __future__ import annotations

from functools import cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

MAX_CHARS = 30_000
"""Longer text is shown as it is. What costs the parser most (nothing but ``[``) takes it half a second at this
length, and a page holds many rows.
"""

_TAGS = frozenset(
    [
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "hr", "br", "blockquote", "pre", "ul", "ol", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *("a", "code", "del", "em", "s", "strong"),
    ]
)
_ATTRIBUTES = {"*": set[str](), "a": {"href"}, "ol": {"start"}}
_SCHEMES = frozenset({"http", "https", "mailto"})


def to_html(text: str) -> SafeString:
    """Links open nothing by themselves and tell the other side nothing about us; images become their text."""
    text = text.replace("\0", "\ufffd")
    if len(text) > MAX_CHARS:
        return _safe(f"<pre>{nh3.clean_text(text)}</pre>")
    return _safe(
        nh3.clean(
            _parser().render(text),
            tags=set(_TAGS),
            attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
            url_schemes=set(_SCHEMES),
            link_rel="noopener noreferrer nofollow",
            strip_comments=True,
        )
    )


@cache
def _parser() -> MarkdownIt:
    """``html`` off: tags are text. Images off: ``![a](b)`` is a link with a mark in front of it."""
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable("table").disable("image")


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # noqa: S308 - cleaned by the list above
