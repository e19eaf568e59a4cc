"""What one log has and the other lost: the records that bring both views to the same conversation.

The raw log is written first, so a crash between the two writes leaves a message without its row; damage can
take a record out of either. Rows and messages find each other by the row ids that a message carries.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from agents.history import (
    PARTIAL_ABORTED,
    PARTIAL_FAILED,
    PARTIAL_SHUTDOWN,
    is_summary,
    message_text,
    persons_parts,
)
from sessions_app.logs import records as make
from sessions_app.logs.raw_view import RawView
from sessions_app.logs.records import Message, Record, Row
from sessions_app.logs.ui_view import UiView

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\] ?")


def agree(ui: UiView, raw: RawView, *, close: bool = True) -> list[Record]:
    """Unnumbered ui records to append; empty when both views agree. Applying them twice adds nothing.

    ``close`` is False while the turn of the row in flight still runs.
    """
    shown = {row["id"]: place for place, row in enumerate(ui.rows)}
    return [
        *(_close_open(ui, raw) if close else ()),
        *_restore(raw, shown, frozenset(ui.moved)),
        *_mark_lost(ui, raw, shown),
    ]


def results_of(messages: Sequence[Message], index: int) -> dict[str, dict[str, Any]]:
    """The result block of every answered tool call of one reply, by its call id; none of any other message.

    They stand behind it, ahead of the next reply: some providers use the same ids in every one.
    """
    found: dict[str, dict[str, Any]] = {}
    if messages[index].get("kind") != "response":
        return found
    behind = (messages[place] for place in range(index + 1, len(messages)))
    for message in itertools.takewhile(lambda message: message.get("kind") == "request", behind):
        for part in message["parts"]:
            kind = part.get("part_kind")
            if kind in ("tool-return", "retry-prompt") and part.get("tool_call_id"):
                found[part["tool_call_id"]] = {
                    "text": plain_text(part.get("content")),
                    "is_error": kind == "retry-prompt" or part.get("outcome", "success") != "success",
                }
    return found


def plain_text(content: Any) -> str:
    """The readable text of a part's content: a string, a list of pieces, or any other value."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(piece for piece in map(_piece_text, content) if piece)
    return "" if content is None else str(content)


def _piece_text(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, dict):
        return str(piece.get("content") or piece.get("text") or "") if piece.get("kind") == "text" else ""
    return ""


def rows_of(message: Message, row_ids: Sequence[str], results: Mapping[str, dict[str, Any]]) -> list[Row]:
    """The rows that show ``message``: one for a reply, one for each user text; none for tool results."""
    if message.get("kind") == "response":
        blocks = [block for part in message["parts"] if (block := _block(part, results))]
        at = str(message.get("timestamp", ""))
        return [make.assistant_row(row_id=row_id, at=at, blocks=blocks) for row_id in row_ids[:1]]
    prompts = persons_parts(message)
    return [_user_row(part, row_id) for part, row_id in zip(prompts, row_ids, strict=False)]


def _user_row(part: dict[str, Any], row_id: str) -> Row:
    text = plain_text(part.get("content"))
    found = _STAMP.match(text)
    stamp = found.group(1) if found else ""
    return make.user_row(row_id=row_id, at=stamp, stamp=stamp, text=text[found.end() :] if found else text)


def _block(part: dict[str, Any], results: Mapping[str, dict[str, Any]]) -> dict[str, Any] | None:
    match part.get("part_kind"):
        case "text" | "thinking" as kind:
            return {"type": kind, "text": str(part.get("content", ""))}
        case "tool-call":
            block = {
                "type": "tool_call",
                "call_id": part.get("tool_call_id", ""),
                "tool": part.get("tool_name", ""),
                "arguments": part.get("args"),
            }
            result = results.get(block["call_id"])
            return {**block, "result": result} if result else block
    return None


def _close_open(ui: UiView, raw: RawView) -> Iterator[Record]:
    """A reply that the raw log holds whole was finished: only its last record is missing here."""
    if not ui.open_rows:
        return
    rows = {row["id"]: row for row in ui.rows}
    replies = {
        row_ids[0]: index
        for index, (message, row_ids) in enumerate(zip(raw.messages, raw.rows, strict=False))
        if row_ids and message.get("kind") == "response"
    }
    for row_id in ui.open_rows:
        row = rows[row_id]
        index = replies.get(row_id)
        reply = None if index is None else raw.messages[index]
        results = {} if index is None else results_of(raw.messages, index)
        status = "interrupted" if reply is None or not _is_finished(reply, results) else "done"
        blocks = row["blocks"] if reply is None else _whole_blocks(reply, row["blocks"], results)
        yield make.add({**row, "status": status, "blocks": closed_blocks(blocks, results)})


def _is_finished(reply: Message, results: Mapping[str, dict[str, Any]]) -> bool:
    """Neither cut off nor with a call that has no result."""
    return not message_text(reply).endswith((PARTIAL_ABORTED, PARTIAL_FAILED, PARTIAL_SHUTDOWN)) and all(
        part.get("tool_call_id") in results for part in reply["parts"] if part.get("part_kind") == "tool-call"
    )


def _whole_blocks(
    reply: Message, streamed: Sequence[dict[str, Any]], results: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """The message's own blocks; of a tool's result what a person was shown, which may be more."""
    shown = {
        block["call_id"]: block["result"] for block in streamed if "result" in block and "call_id" in block
    }
    blocks = [block for part in reply["parts"] if (block := _block(part, results))]
    return [
        {**block, "result": shown[block["call_id"]]} if block.get("call_id") in shown else block
        for block in blocks
    ]


def closed_blocks(
    blocks: list[dict[str, Any]], results: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Every tool call with its result, or marked as interrupted where there is none."""
    return [
        {
            **block,
            "result": results.get(
                block.get("call_id", ""), {"text": "", "is_error": True, "interrupted": True}
            ),
        }
        if block.get("type") == "tool_call" and "result" not in block
        else block
        for block in blocks
    ]


def _restore(raw: RawView, shown: Mapping[str, int], moved: Collection[str]) -> Iterator[Record]:
    """Rows for messages that neither the ui log nor a segment shows, each before the next row that is there."""
    known = {*shown, *moved}
    following: list[str | None] | None = None
    for index, row_ids in enumerate(raw.rows):
        if known.issuperset(row_ids):
            continue
        following = following or _shown_behind(raw, shown)
        for row in rows_of(raw.messages[index], row_ids, results_of(raw.messages, index)):
            if row["id"] in known:
                continue
            known.add(row["id"])
            record = make.add({**row, "restored": True})
            host = following[index]
            yield {**record, "before": host} if host else record


def _shown_behind(raw: RawView, shown: Mapping[str, int]) -> list[str | None]:
    """For each message the first shown row of those behind it."""
    found: list[str | None] = [None] * len(raw.rows)
    for index in range(len(raw.rows) - 1, 0, -1):
        own = next((row_id for row_id in raw.rows[index] if row_id in shown), None)
        found[index - 1] = own or found[index]
    return found


def _mark_lost(ui: UiView, raw: RawView, shown: Mapping[str, int]) -> Iterator[Record]:
    """Rows whose messages fell into a gap of the raw log: a person still sees them, the model doesn't.

    Those that a summary stands for are not lost while it is there.
    """
    if not raw.gaps:
        return
    held = {row_id for rows in raw.rows for row_id in rows}
    moved = {row_id: place for place, row_id in enumerate(ui.moved)}
    covered = moved.get(raw.covers, len(ui.moved) - 1 if raw.covers in shown else -1)
    for gap in raw.gaps:
        lower, upper = _around(gap, raw, moved, len(ui.moved), covered=covered)
        for row_id in ui.moved[lower:upper]:
            if row_id not in held and (row_id, "lost") not in ui.archived_sets:
                yield make.set_field(row_id, "lost", True)
        lower, upper = _around(gap, raw, shown, len(ui.rows), covered=shown.get(raw.covers, -1))
        for row in ui.rows[lower:upper]:
            if row["role"] != "system" and row["id"] not in held and not row.get("lost"):
                yield make.set_field(row["id"], "lost", True)


def _around(
    gap: int, raw: RawView, places: Mapping[str, int], count: int, *, covered: int
) -> tuple[int, int]:
    """The rows (their places, from and up to) whose messages may have stood where the gap is.

    ``covered``: the place of the last row in a summary. Rows that the summary's own message names stand behind
    the messages that it kept, so they say nothing of its neighbours.
    """
    start = 1 if raw.messages and is_summary(raw.messages[0]) else 0
    before = [places[i] for rows in raw.rows[start:gap] for i in rows if i in places]
    after = [places[i] for rows in raw.rows[max(start, gap) :] for i in rows if i in places]
    return max([covered, *before]) + 1, min(after, default=count)
