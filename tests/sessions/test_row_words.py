"""The small words of a row on a page, from whatever stands in the log."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.templatetags.session_rows import first_argument, moment


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-11-29T19:48:46.400Z", "2026-11-29 19:48:46 UTC"),
        ("2026-11-29T20:48:46+01:00", "2026-11-29 19:48:46 UTC"),
        ("2026-11-29T19:48:46", "2026-11-29T19:48:46"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"),
        ("soon", "soon"),
        (12, "12"),
        (None, ""),
        ({"at": 1}, "{'at': 1}"),
    ],
)
def test_a_moment_is_shown_for_people_and_anything_else_as_it_stands(stamp: Any, shown: str) -> None:
    assert moment(stamp) == shown


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"path": "docs/brakes.md", "offset": 1}, "docs/brakes.md"),
        ({"limit": 3, "pattern": "pads"}, "pads"),
        ({"command": "ls\n  -l"}, "ls -l"),
        ({"path": "/home/rita/shop/.halo/docs/brakes.md"}, "…/.halo/docs/brakes.md"),
        ({"path": "/srv/a/b"}, "/srv/a/b"),
        ({"command": "/usr/bin/env python -m a.b.c/d/e"}, "/usr/bin/env python -m a.b.c/d/e"),
        ({"command": "x" * 500}, "x" * 80 + "…"),
        ({"path": " "}, ""),
        ({}, ""),
        (["a"], ""),
        ("text", ""),
        (None, ""),
    ],
)
def test_a_call_is_named_by_its_first_text(arguments: Any, shown: str) -> None:
    assert first_argument(arguments) == shown
