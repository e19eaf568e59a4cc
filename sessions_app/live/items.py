"""What is sent of one row, made once for all views of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.template.loader import render_to_string

from core.frames import ChatAssistant, ChatDiscard, ChatSystem, ChatUser
from core.texts import encodable
from sessions_app.logs import Row
from sessions_app.logs.shown import shown
from sessions_app.named_pages import pages_in_notes

_FRAMES = {"user": ChatUser, "assistant": ChatAssistant}
ROW_TEMPLATE = "sessions/row.html"


@dataclass(frozen=True, slots=True)
class Item:
    """One frame, with what a page shows of it and without. ``retires``: the growing row that it takes over."""

    plain: str
    laid_out: str
    retires: str = ""


def row_item(session_id: str, row: Row, *, seq: int | None, before: str | None, html: bool) -> Item:
    """``html`` False: nobody asked for it, and both frames are the plain one. Renders; call it off the loop."""
    row = shown(row)
    before = before and encodable(before)
    make = _FRAMES.get(row["role"], ChatSystem)
    plain = make(session=session_id, seq=seq, row=row, before=before).to_text()
    laid_out = plain
    if html:
        laid_out = make(
            session=session_id, seq=seq, row=_named(row), before=before, html=row_html(row)
        ).to_text()
    return Item(plain, laid_out, retires=row["id"])


def discard_item(session_id: str, row_id: str, *, seq: int | None) -> Item:
    text = ChatDiscard(session=session_id, seq=seq, row=encodable(row_id)).to_text()
    return Item(text, text, retires=row_id)


def row_html(row: Mapping[str, Any]) -> str:
    """``row`` as ``shown`` returns it. What models and people wrote is escaped in it, or Markdown that was cleaned.

    It holds the buttons that a page shows to who may use them.
    """
    given = {"row": row, "controls": True, "pages": pages_in_notes([row])}
    return render_to_string(ROW_TEMPLATE, given)


def _named(row: Row) -> Row:
    """What a page needs beside the html: by which names it finds the row again."""
    return {name: row[name] for name in ("id", "role", "stamp", "kind") if name in row}
