"""Earlier rows of a session, moved out of its ui log: ``<leaf>.arch.<n>.jsonl.gz``, numbered from 1.

A segment holds one ``add`` record a row, as the view showed it. The head of the ui log says how many segments
count; one above that number was left by an archiving that died, and the next one overwrites it.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import atomic
from sessions_app.logs import records as make
from sessions_app.logs.lines import scan
from sessions_app.logs.records import Row, system_row
from sessions_app.logs.ui_view import UiView, fold_ui

ARCHIVE_OVER = 3 * 1024 * 1024
"""Bytes of a ui log that a compaction leaves, above which its earlier exchanges move (rule 7)."""
SEGMENT_BYTES = 16 * 1024 * 1024
MAX_BYTES = 128 * 1024 * 1024
"""More than any segment holds that we wrote; what unpacks to more is a bomb and read no further."""
STAMPS_KEPT = 1_000
_CHUNK = 64 * 1024
_GZIP = 31


@dataclass(frozen=True, slots=True)
class Segment:
    """``whole``: every byte of it was understood."""

    rows: list[Row]
    whole: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """What an archiving does: ``segments`` by their path, then the new ui log's ``records`` (unnumbered)."""

    segments: Mapping[Path, bytes]
    records: Sequence[make.Record]


def segment_path(folder: Path, leaf: str, number: int) -> Path:
    return folder / f"{leaf}.arch.{number}.jsonl.gz"


def read_segment(folder: Path, leaf: str, number: int) -> Segment:
    """The rows of one segment; what can't be read of it is named by a row. Never writes."""
    path = segment_path(folder, leaf, number)
    try:
        data, why = _unpacked(path)
    except FileNotFoundError:
        data, why = b"", "it is gone"
    view = fold_ui(scan(data))
    if not why and not data.endswith(b"\n"):
        why = "its end is missing"
    if why:
        view.rows.append(
            system_row(
                row_id=f"damage-segment-{number}",
                at="",
                kind="damage",
                text=f"Part {number} of the earlier conversation ({path.name}) can't be read whole: {why}. What "
                "could be read of it stands above.",
            )
        )
    return Segment(view.rows, whole=not (why or view.damages or view.orphans or view.late))


def archived_count(path: Path) -> int:
    """How many segments the ui log at ``path`` counts, by its first line alone."""
    try:
        with path.open("rb") as stream:
            records = scan(stream.readline()).records
    except FileNotFoundError:
        return 0
    return int(records[0]["archived"]) if records and records[0]["t"] == "head" else 0


def earlier_rows(folder: Path, leaf: str, archived: int) -> Iterator[Row]:
    """All rows of the first ``archived`` segments, the oldest first, one segment in memory at a time."""
    for number in range(1, archived + 1):
        yield from read_segment(folder, leaf, number).rows


def newest_exchange(rows: Sequence[Row]) -> int:
    """Where the newest exchange begins: at the first of the user rows that are answered together."""
    start = next((place for place in range(len(rows) - 1, -1, -1) if rows[place]["role"] == "user"), 0)
    while start and rows[start - 1]["role"] == "user":
        start -= 1
    return start


def moved_out(folder: Path, leaf: str, view: UiView, named: Sequence[str]) -> Moved | None:
    """Everything but the newest exchange as segments; None when there is nothing else.

    ``named``: ids of rows that the raw log's messages name, in their order.
    """
    start = newest_exchange(view.rows)
    if not start:
        return None
    pieces = _pieces(view.rows[:start])
    segments = {
        segment_path(folder, leaf, view.archived + place): _packed(rows)
        for place, rows in enumerate(pieces, start=1)
    }
    kept = view.rows[start:]
    held = {row["id"] for row in kept}
    stamps = [*view.stamps, *(row["stamp"] for row in view.rows[:start] if row.get("stamp"))]
    head = make.head(
        archived=view.archived + len(pieces),
        moved=[row_id for row_id in named if row_id not in held],
        stamps=stamps[-STAMPS_KEPT:],
    )
    return Moved(segments, [head, *(_kept(row, view) for row in kept)])


def set_in_segments(
    folder: Path, leaf: str, archived: int, fields: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Set fields of archived rows by their id, each segment written anew once; what was found and set.

    The newest segment is looked at first. One that can't be read whole is left as it is.
    """
    waiting, done = dict(fields), {}
    for number in range(archived, 0, -1):
        if not waiting:
            break
        segment = read_segment(folder, leaf, number)
        found = {row["id"]: waiting.pop(row["id"]) for row in segment.rows if row["id"] in waiting}
        if not found or not segment.whole:
            continue
        rows = [{**row, **found.get(row["id"], {})} for row in segment.rows]
        atomic.write_bytes(segment_path(folder, leaf, number), _packed(rows), mode=0o600)
        done.update(found)
    return done


def recovered_head(folder: Path, leaf: str, view: UiView, named: Sequence[str]) -> make.Record | None:
    """The head of a log that lost it (or was lost itself), from the segments there are; None without any.

    A last segment whose rows all stand in the log was left by an archiving that died.
    """
    if view.has_head or not segment_path(folder, leaf, 1).exists():
        return None
    shown = {row["id"] for row in view.rows}
    archived, earlier, stamps = 0, set[str](), list[str]()
    while segment_path(folder, leaf, archived + 1).exists():
        rows = read_segment(folder, leaf, archived + 1).rows
        if all(row["id"] in shown for row in rows):
            break
        archived += 1
        earlier.update(row["id"] for row in rows)
        stamps += [row["stamp"] for row in rows if row.get("stamp")]
    if not archived:
        return None
    moved = [row_id for row_id in named if row_id in earlier]
    return make.head(archived=archived, moved=moved, stamps=stamps[-STAMPS_KEPT:])


def _kept(row: Row, view: UiView) -> make.Record:
    """The record that shows ``row`` as it is: one that is still in flight goes on growing."""
    if row["id"] not in view.open_rows:
        return make.add(row)
    return make.inflight(row["id"], row["at"], {str(n): block for n, block in enumerate(row["blocks"])})


def _packed(rows: Sequence[Row]) -> bytes:
    lines = make.encode({**make.add(row), "seq": number} for number, row in enumerate(rows, start=1))
    return gzip.compress(lines, compresslevel=6, mtime=0)


def _pieces(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows in pieces that may be read one at a time."""
    pieces: list[list[Row]] = []
    length = SEGMENT_BYTES
    for row in rows:
        size = len(make.encode([row]))
        if length + size > SEGMENT_BYTES:
            pieces.append([])
            length = 0
        pieces[-1].append(row)
        length += size
    return pieces


def _unpacked(path: Path) -> tuple[bytes, str]:
    """What ``path`` unpacks to, as far as that goes, and why no further."""
    found = bytearray()
    unpacker = zlib.decompressobj(wbits=_GZIP)
    with path.open("rb") as stream:
        while packed := stream.read(_CHUNK):
            try:
                while packed and not unpacker.eof:
                    found += unpacker.decompress(packed, _CHUNK)
                    packed = unpacker.unconsumed_tail
                    if len(found) > MAX_BYTES:
                        return bytes(found), f"it unpacks to more than {MAX_BYTES} bytes"
            except zlib.error as error:
                return bytes(found), str(error)
            if unpacker.unused_data or (unpacker.eof and packed):
                return bytes(found), "something stands behind its end"
    return bytes(found), "" if unpacker.eof else "its end is missing"
