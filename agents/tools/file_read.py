"""Reading a text file, whole or a range of lines."""

from __future__ import annotations

import os
from typing import BinaryIO

from agents import files
from agents.tools.context import ToolContext, ToolError

LINES = 2_000
BYTES_WITHOUT_RANGE = 2 * 1024 * 1024


def file_read(context: ToolContext, path: str, offset: int = 1, limit: int = 0) -> str:
    """Read a text file. Long files come in parts; the last line says how to go on.

    Args:
        path: The file, absolute or relative to the working directory.
        offset: The first line to read, counted from 1.
        limit: How many lines to read; 0 means as many as fit, at most 2000.
    """
    if offset < 1 or limit < 0:
        raise ToolError("offset starts at 1 and limit can't be negative.")
    with files.walk(context.view, path) as place:
        descriptor = files.open_for_reading(place)
    with os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > BYTES_WITHOUT_RANGE and offset == 1 and not limit:
            raise ToolError(
                f"{path} has {size:,} bytes, more than {BYTES_WITHOUT_RANGE:,}; "
                "read a part of it with offset and limit, or search it with grep."
            )
        return _lines(stream, path, offset=offset, limit=limit or LINES, room=context.limits.result_chars)


def _lines(stream: BinaryIO, path: str, *, offset: int, limit: int, room: int) -> str:
    """The wanted lines as far as ``room`` characters go, cut between lines."""
    room = max(room - 200, 200)
    kept: list[str] = []
    number = 0
    first_bytes = True
    for raw in stream:
        if first_bytes and b"\0" in raw[:8192]:
            raise ToolError(f"{path} is a binary file.")
        first_bytes = False
        number += 1
        if number < offset:
            continue
        if number >= offset + limit:
            return "".join(kept) + _go_on(number)
        line = raw.decode("utf-8", "replace")
        if len(line) > room:
            if not kept:
                rest = len(line) - room
                return (
                    f"{line[:room]}\n[line {number} goes on for {rest:,} characters; use grep or shell_exec]"
                )
            return "".join(kept) + _go_on(number)
        room -= len(line)
        kept.append(line)
    if not kept and offset > 1:
        raise ToolError(f"{path} has {number} lines; offset {offset} lies behind its end.")
    return "".join(kept) if kept else "[the file is empty]"


def _go_on(line: int) -> str:
    return f"[cut here; go on with offset={line}]"
