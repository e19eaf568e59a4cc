"""Lists page by cursor: opaque, stable while rows come and go, as fast on the last page as on the first."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from core.db.rest.errors import ApiError

MAX_LIMIT = 200
DEFAULT_LIMIT = 50
MAX_CURSOR_CHARS = 600

Row = TypeVar("Row")


def page(
    found: Sequence[Row], *, limit: int, show: Callable[[Row], Any], key: Callable[[Row], Sequence[str]]
) -> dict[str, Any]:
    """``found`` holds one row more than ``limit`` when there is a further page."""
    shown = found[:limit]
    further = len(found) > limit
    return {"items": [show(row) for row in shown], "next": encode(key(shown[-1])) if further else None}


def encode(values: Sequence[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(values)).encode()).decode().rstrip("=")


def decode(cursor: str, *, parts: int) -> list[str]:
    """Raises ApiError ``bad_cursor``."""
    try:
        if len(cursor) > MAX_CURSOR_CHARS:
            raise ValueError("too long")
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        values = json.loads(raw)
    except (ValueError, binascii.Error, RecursionError) as error:
        raise bad_cursor() from error
    if not isinstance(values, list) or len(values) != parts:
        raise bad_cursor()
    if not all(isinstance(value, str) and value.isascii() and "\0" not in value for value in values):
        raise bad_cursor()
    return values


def bad_cursor() -> ApiError:
    return ApiError(
        400,
        "bad_cursor",
        "This cursor is none that a list gave; start again without one.",
        fields=[{"field": "cursor", "message": "not a cursor"}],
    )
