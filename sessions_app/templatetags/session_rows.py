"""What the templates of rows need: moments, what a tool was called with, pictures as addresses that load nothing.

Rows come out of files that anybody may have written: whatever doesn't fit is shown as it stands, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.utils.safestring import SafeString

from core.texts import moment_words
from sessions_app import named_pages
from sessions_app.images import data_address

register = template.Library()
ARGUMENT_CHARS = 80
PATH_PARTS = 3


@register.filter
def moment(stamp: Any) -> str:
    """``2026-11-29 19:48:46 UTC``"""
    try:
        at = datetime.fromisoformat(stamp)
        return moment_words(at) if at.tzinfo else str(stamp)
    except (TypeError, ValueError, OverflowError):  # no moment
        return str(stamp) if stamp else ""


@register.filter
def first_argument(arguments: Any) -> str:
    """The first text a tool was called with, in one line: usually the path, the pattern or the command.

    Of a long absolute path the end is shown, which tells files of one workspace apart.
    """
    values = arguments.values() if isinstance(arguments, Mapping) else ()
    text = next((value for value in values if isinstance(value, str) and value.strip()), "")
    line = " ".join(text[: 4 * ARGUMENT_CHARS].split())
    if line.startswith("/") and " " not in line and len(parts := line.split("/")) > PATH_PARTS + 1:
        line = "…/" + "/".join(parts[-PATH_PARTS:])
    return line if len(line) <= ARGUMENT_CHARS else f"{line[:ARGUMENT_CHARS]}…"


@register.filter
def linked(text: Any, pages: Mapping[str, str]) -> SafeString:
    """A note, with links to the ``pages`` of what it names."""
    return named_pages.linked(text if isinstance(text, str) else "", pages)


@register.filter
def image_address(image: Any) -> str:
    return data_address(image)
