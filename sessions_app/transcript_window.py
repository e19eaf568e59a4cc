"""The rows that a transcript page shows: some of the newest part, or of one that was archived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.errors import SessionRefused
from sessions_app.logs import Row, read_session
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.selectors import archived_rows

ROWS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Window:
    """``earlier`` and ``later``: query strings of the neighbours, None where there is none."""

    rows: Sequence[Row]
    earlier: str | None = None
    later: str | None = None
    unreadable: str = ""


def window(session: Session, *, part: str = "", before: str = "") -> Window:
    """The last rows of the newest part or of segment ``part``, or the last ones ahead of row ``before`` in it.

    What isn't a number of either counts as not given: these come from an address line.
    """
    number = _number(part)
    try:
        if number is not None:
            return _window(archived_rows(session, number), number=number, before=before, above=number - 1)
        ui, _ = read_session(log_folder(session), log_leaf(session))
    except SessionRefused:
        return window(session, before=before)
    except (OSError, ValueError) as error:
        return Window([], unreadable=str(error))
    return _window(ui.rows, number=None, before=before, above=ui.archived)


def _window(rows: Sequence[Row], *, number: int | None, before: str, above: int) -> Window:
    wanted = _number(before)
    end = len(rows) if wanted is None else min(wanted, len(rows))
    start = max(0, end - ROWS_SHOWN)
    here = "" if number is None else f"part={number}&"
    earlier = f"?{here}before={start}" if start else f"?part={above}" if above else None
    later = f"?{here}" if end < len(rows) else "?" if number is not None else None
    return Window(rows[start:end], earlier=earlier, later=later)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
