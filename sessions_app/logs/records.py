"""The records of both logs and the rows they fold into.

Every record carries ``t`` (its type) and ``e`` (the lease epoch of its writer; 0 for a session without a
lease). Records of the ui log also carry ``seq``.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agents.events import Message

Record = dict[str, Any]
Row = dict[str, Any]
"""What a view shows: ``id``, ``role`` (user, assistant, system), ``at``, and by role the fields below."""

__all__ = ["Message", "Record", "Row"]


@dataclass(frozen=True, slots=True)
class GrowingRow:
    """An assistant row before its final ``add``: its blocks so far, in the shape of the row's."""

    id: str
    at: str
    blocks: tuple[dict[str, Any], ...]


def new_row_id() -> str:
    return secrets.token_hex(8)


def user_row(
    *, row_id: str, at: str, stamp: str, text: str, images: Sequence[Any] = (), source: str = ""
) -> Row:
    row: Row = {"id": row_id, "role": "user", "at": at, "stamp": stamp, "text": text}
    if images:
        row["images"] = list(images)
    if source:
        row["source"] = source
    return row


def assistant_row(*, row_id: str, at: str, blocks: Sequence[dict[str, Any]], status: str = "done") -> Row:
    """``status``: done, interrupted, failed. Blocks: ``text``, ``thinking``, ``tool_call`` (with result)."""
    return {"id": row_id, "role": "assistant", "at": at, "status": status, "blocks": list(blocks)}


def system_row(*, row_id: str, at: str, kind: str, text: str, kept: Sequence[Any] = ()) -> Row:
    """``kind``: note, error, damage, late. ``kept`` holds the records that a note is about, unchanged."""
    row: Row = {"id": row_id, "role": "system", "at": at, "kind": kind, "text": text}
    if kept:
        row["kept"] = list(kept)
    return row


def add(row: Row) -> Record:
    return {"t": "add", "row": row}


def inflight(row_id: str, at: str, blocks: dict[str, dict[str, Any]]) -> Record:
    """``blocks``: the changed blocks only, by their index as text."""
    return {"t": "inflight", "id": row_id, "at": at, "blocks": blocks}


def set_field(row_id: str, field: str, value: Any) -> Record:
    return {"t": "set", "id": row_id, "field": field, "value": value}


def drop(row_id: str) -> Record:
    return {"t": "drop", "id": row_id}


def head(*, archived: int = 0, moved: Sequence[str] = (), stamps: Sequence[str] = ()) -> Record:
    """The first record of a ui log that was written anew.

    ``archived``: how many segments hold earlier rows. ``moved``: ids of rows in them that messages of the raw
    log still name. ``stamps``: of the newest user rows in them.
    """
    record: Record = {"t": "head", "archived": archived}
    if moved:
        record["moved"] = list(moved)
    if stamps:
        record["stamps"] = list(stamps)
    return record


def message(content: Message, rows: Sequence[str] = (), *, covers: str = "") -> Record:
    """``rows``: the ids of the ui rows that show this message. ``covers``: the last row a summary stands for."""
    record: Record = {"t": "msg", "m": content}
    if rows:
        record["rows"] = list(rows)
    if covers:
        record["covers"] = covers
    return record


def part(n: int, content: dict[str, Any]) -> Record:
    return {"t": "part", "n": n, "p": content}


def encode(records: Iterable[Record]) -> bytes:
    """One JSON document a line, each ended by byte 0x0A; lone surrogates survive as escapes."""
    return b"".join([_line(record) for record in records])


def _line(record: Record) -> bytes:
    try:
        return _ENCODER.encode(record).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
