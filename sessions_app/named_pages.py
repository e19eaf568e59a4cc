"""Rows that a note names by id (``run-01j...``), as links to their pages.

The upper floors say which there are and where they stand: ``register`` is called in an ``AppConfig.ready``. Whoever
may read a conversation (``workspaces.view``) may open those pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

Finder = Callable[[Collection[str]], Mapping[str, str]]

MAX_NAMED = 100
"""Names looked up for one page; a text that a model wrote may hold any number of them."""

_NAME = re.compile(r"(?<![\w-])([a-z]{1,20})-([0-9a-z]{26})(?![\w-])")
_finders: dict[str, Finder] = {}


def register(kind: str, finder: Finder) -> None:
    """``finder`` is handed row ids and returns the addresses of those that there are."""
    _finders[kind] = finder


def pages_named(texts: Iterable[str]) -> dict[str, str]:
    """By name, the addresses of the rows that ``texts`` name. Asks the database only where something is named."""
    wanted: dict[str, set[str]] = {}
    count = 0
    for text in texts:
        for kind, row_id in _NAME.findall(text):
            if kind in _finders and row_id not in wanted.setdefault(kind, set()) and count < MAX_NAMED:
                wanted[kind].add(row_id)
                count += 1
    found: dict[str, str] = {}
    for kind, ids in wanted.items():
        found |= {f"{kind}-{row_id}": address for row_id, address in _finders[kind](ids).items()}
    return found


def pages_in_notes(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Of those rows of a conversation that neither a person nor the model said."""
    texts = (row.get("text") for row in rows if row.get("role") not in ("user", "assistant"))
    return pages_named(text for text in texts if isinstance(text, str))


def linked(text: str, pages: Mapping[str, str]) -> SafeString:
    """``text`` as HTML: everything escaped, and what ``pages`` knows a link."""
    parts, end = [], 0
    for match in _NAME.finditer(text):
        if match[0] in pages:
            link = format_html('<a class="named-page" href="{}">{}</a>', pages[match[0]], match[0])
            parts += [(text[end : match.start()],), (link,)]
            end = match.end()
    return format_html_join("", "{}", [*parts, (text[end:],)])
