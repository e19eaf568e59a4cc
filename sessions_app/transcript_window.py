"""The rows that a transcript page shows: some of the newest part, or of one that was archived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sessions_app.at_work import is_working
from sessions_app.errors import SessionRefused
from sessions_app.logs import Row, read_session, read_ui
from sessions_app.logs.segments import archived_count
from sessions_app.logs.shown import shown
from sessions_app.models import Session
from sessions_app.named_pages import pages_in_notes
from sessions_app.places import log_folder, log_leaf, ui_log
from sessions_app.selectors import archived_rows

ROWS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Window:
    """``earlier`` and ``later``: query strings of the neighbours, None where there is none.

    ``after``: from where on a live view follows. ``stamps``: of all messages that stand in rows. ``archives``:
    how many archived parts there are. ``pages``: the addresses of what notes among the rows name.
    """

    rows: Sequence[Row]
    earlier: str | None = None
    later: str | None = None
    unreadable: str = ""
    after: int = 0
    stamps: frozenset[str] = frozenset()
    archives: int = 0
    pages: Mapping[str, str] = field(default_factory=dict)


def window(session: Session, *, part: str = "", before: str = "") -> Window:
    """The last rows of the newest part or of segment ``part``, or the last ones ahead of row ``before`` in it.

    What isn't a number of either counts as not given: these come from an address line.
    """
    number = _number(part)
    try:
        if number is not None:
            rows = archived_rows(session, number)
            found = _window(rows, number=number, before=before, above=number - 1)
            return replace(found, archives=archived_count(ui_log(session)))
        log = read_ui(ui_log(session))  # first: what comes meanwhile is sent again, and shown once
        ui, _ = read_session(log_folder(session), log_leaf(session))
    except SessionRefused:
        return window(session, before=before)
    except (OSError, ValueError) as error:
        return Window([], unreadable=str(error))
    found = _window(
        _with_state(ui.rows, log.open_rows, session), number=None, before=before, above=ui.archived
    )
    stamps = {row["stamp"] for row in ui.rows if isinstance(row.get("stamp"), str)}
    return replace(found, after=log.seq, stamps=frozenset(stamps | set(ui.stamps)), archives=ui.archived)


def _with_state(rows: list[Row], growing: list[str], session: Session) -> list[Row]:
    """A reply that nobody has finished yet isn't called interrupted while somebody works on it."""
    if not growing or not is_working(session):
        return rows
    return [{**row, "status": "working"} if row["id"] in growing else row for row in rows]


def _window(rows: Sequence[Row], *, number: int | None, before: str, above: int) -> Window:
    wanted = _number(before)
    end = len(rows) if wanted is None else min(wanted, len(rows))
    start = max(0, end - ROWS_SHOWN)
    here = "" if number is None else f"part={number}&"
    earlier = f"?{here}before={start}" if start else f"?part={above}" if above else None
    later = f"?{here}" if end < len(rows) else "?" if number is not None else None
    visible = [shown(row) for row in rows[start:end]]
    return Window(visible, earlier=earlier, later=later, pages=pages_in_notes(visible))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
