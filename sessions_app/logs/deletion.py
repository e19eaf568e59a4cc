"""One user turn with its answers, taken out of what the model sees and greyed in what a person sees.

A turn is located by its stamp, which stands at the start of the text that the model reads and on the ui row. The
ui rows are marked first; what is marked and still stands in the raw log is taken out there, by the deletion
itself or, when that died in between, by the next writer that opens the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents import history as wire
from sessions_app import stamps
from sessions_app.logs import records as make
from sessions_app.logs.raw_view import RawView
from sessions_app.logs.records import Message, Record, Row

Place = tuple[int, int, int]
"""Message, part and piece (0 in a part that is one text) where a stamped text stands."""

_STAYS = ("damage", "late")


def places_of(stamp: str, messages: Sequence[Message]) -> list[Place]:
    """Where the model reads texts that begin with this stamp."""
    mark = f"[{stamp}]"
    return [
        (index, number, piece)
        for index, message in enumerate(messages)
        for number, part in enumerate(message["parts"])
        if part.get("part_kind") == "user-prompt"
        for piece, text in enumerate(_pieces(part))
        if isinstance(text, str) and text.startswith(mark)
    ]


def rows_of_turn(rows: Sequence[Row], place: int) -> list[Row]:
    """The user row at ``place`` and, when it is the last before an answer, everything up to the next user row."""
    end = place + 1
    while end < len(rows) and rows[end]["role"] != "user":
        end += 1
    return [row for row in rows[place:end] if row.get("kind") not in _STAYS]


def marks(rows: Sequence[Row]) -> list[Record]:
    return [make.set_field(row["id"], "deleted", True) for row in rows]


def unfinished(rows: Sequence[Row], raw: RawView) -> RawView | None:
    """The raw log without the turns whose rows are marked as deleted; None when it has none of them."""
    marked = [
        row["stamp"] for row in rows if row["role"] == "user" and row.get("deleted") and row.get("stamp")
    ]
    still_there = stamps.in_history(raw.messages) if marked else set()
    found = None
    for stamp in marked:
        if stamp not in still_there:
            continue
        places = places_of(stamp, (found or raw).messages)
        if len(places) == 1:
            found = without_turn(found or raw, places[0])
    return found


def without_turn(raw: RawView, place: Place) -> RawView:
    """Without the text at ``place`` and its images; without the reply as well, unless a later text owns it.

    Results that the message brings stay with it, and lead the next turn's opening when nothing else is left
    of it. No call is parted from its result.
    """
    index, number, piece = place
    message = raw.messages[index]
    kept, owns_reply = _without_block(message, number, piece)
    rows = _rows_without(raw.rows[index], message, number, piece)
    if not owns_reply:
        return _spliced(raw, index, index + 1, [kept], [rows])
    end = index + 1
    while end < len(raw.messages) and not _opens_turn(raw.messages[end]):
        end += 1
    gone = {call["tool_call_id"] for m in raw.messages[index + 1 : end] for call in wire.tool_calls(m)}
    if end == len(raw.messages):
        return _spliced(raw, index, end, [kept] if kept["parts"] else [], [rows])
    opening = raw.messages[end]
    if gone:
        parts = [part for part in opening["parts"] if part.get("tool_call_id") not in gone]
        opening = {**opening, "parts": parts}
    if wire.is_summary(message):
        return _spliced(raw, index, end + 1, [kept, opening], [rows, raw.rows[end]])
    merged = {**opening, "parts": [*kept["parts"], *opening["parts"]]} if kept["parts"] else opening
    return _spliced(raw, index, end + 1, [merged], [(*rows, *raw.rows[end])])


def _opens_turn(message: Message) -> bool:
    return bool(wire.persons_parts(message)) or wire.is_summary(message)


def _without_block(message: Message, number: int, piece: int) -> tuple[Message, bool]:
    """The message without one text and the images before it, and whether no other text follows in it."""
    part = message["parts"][number]
    pieces = _pieces(part)
    start = piece
    while start and _belongs_to_next(pieces[start - 1]):
        start -= 1
    end = next((at for at in range(piece + 1, len(pieces)) if _is_stamped(pieces[at])), len(pieces))
    while piece + 1 < end < len(pieces) and _belongs_to_next(pieces[end - 1]):
        end -= 1
    left = [*pieces[:start], *pieces[end:]]
    middle = [] if not left else [{**part, "content": left}]
    later = [*pieces[end:], *(text for after in message["parts"][number + 1 :] for text in _pieces(after))]
    parts = [*message["parts"][:number], *middle, *message["parts"][number + 1 :]]
    return {**message, "parts": parts}, not any(isinstance(text, str) for text in later)


def _rows_without(rows: tuple[str, ...], message: Message, number: int, piece: int) -> tuple[str, ...]:
    """The row of this text goes: rows and texts of a message stand in the same order."""
    texts = [
        (at, within)
        for at, part in enumerate(message["parts"])
        if part.get("part_kind") == "user-prompt"
        for within, text in enumerate(_pieces(part))
        if isinstance(text, str) and _is_stamped(text)
    ]
    if len(texts) != len(rows):
        return () if len(texts) == 1 else rows
    gone = texts.index((number, piece))
    return (*rows[:gone], *rows[gone + 1 :])


def _spliced(
    raw: RawView,
    start: int,
    end: int,
    messages: Sequence[Message],
    rows: Sequence[tuple[str, ...]],
) -> RawView:
    """``raw`` with its messages from ``start`` up to ``end`` replaced; gaps keep their places."""
    removed = end - start - len(messages)
    return replace(
        raw,
        messages=[*raw.messages[:start], *messages, *raw.messages[end:]],
        rows=[*raw.rows[:start], *rows[: len(messages)], *raw.rows[end:]],
        gaps=[gap if gap <= start else max(start, gap - removed) for gap in raw.gaps],
    )


def _pieces(part: dict[str, Any]) -> list[Any]:
    if part.get("part_kind") != "user-prompt":
        return []
    content = part.get("content")
    return content if isinstance(content, list) else [content]


def _is_stamped(text: Any) -> bool:
    return isinstance(text, str) and text[:1] == "[" and text[24:26] == "Z]"


def _belongs_to_next(piece: Any) -> bool:
    """A message's images come before its text, as does what stands for one that was taken out."""
    return not isinstance(piece, str) or piece == wire.IMAGE_REMOVED
