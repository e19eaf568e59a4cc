"""Rows of a session as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from core.texts import counted, for_terminal
from sessions_app.logs import Row

RESULT_LINES = 6


def lines_of(row: Row) -> list[str]:
    """One row, its speaker first; long tool results are cut and say so."""
    return [for_terminal(line) for line in _lines(row)]


def _lines(row: Row) -> Iterator[str]:
    marks = "".join(f" ({mark})" for mark in ("deleted", "lost", "restored") if row.get(mark))
    if row["role"] == "assistant":
        state = "" if row.get("status") == "done" else f" ({row.get('status')})"
        yield f"assistant{state}{marks}:"
        for block in row.get("blocks", ()):
            yield from _block(block)
        return
    yield f"{row['role']}{marks}: {row.get('text', '')}"
    if isinstance(images := row.get("images"), list) and images:
        yield f"  [{counted(len(images), 'image')}]"


def _block(block: dict[str, object]) -> Iterator[str]:
    if block.get("type") != "tool_call":
        yield str(block.get("text", ""))
        return
    yield f"  > {block.get('tool')} {json.dumps(block.get('arguments'), ensure_ascii=False)}"
    result = block.get("result")
    if not isinstance(result, dict):
        return
    if result.get("interrupted") and not result.get("text"):
        yield "    (interrupted)"
    lines = str(result.get("text", "")).splitlines()
    for line in lines[:RESULT_LINES]:
        yield f"    {line}"
    if len(lines) > RESULT_LINES:
        yield f"    ({len(lines) - RESULT_LINES} more lines)"
