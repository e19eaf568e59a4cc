"""Reading a text file, whole or a range of lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader

from agents import files
from agents.tools.context import ToolContext, ToolError

LINES = 2_000
BYTES_WITHOUT_RANGE = 2 * 1024 * 1024
_SKIPPED_AT_ONCE = 65_536


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
        if b"\0" in stream.peek(8192)[:8192]:
            raise ToolError(f"{path} is a binary file.")
        return _lines(context, stream, path, offset=offset, limit=limit or LINES)


def _lines(context: ToolContext, stream: BufferedReader, path: str, *, offset: int, limit: int) -> str:
    """The wanted lines as far as ``result_chars`` go, cut between lines; no line is held as a whole."""
    room = max(context.limits.result_chars - 200, 200)
    kept: list[str] = []
    number = 0
    for raw, is_whole in _pieces(context, stream, 4 * room):
        _check_abort(context)
        number += 1
        if number < offset:
            continue
        if number >= offset + limit:
            return "".join(kept) + _go_on(number)
        line = raw.decode("utf-8", "replace")
        if len(line) > room or not is_whole:
            if not kept:
                return f"{line[:room]}\n[line {number} is longer than that; use grep or shell_exec]"
            return "".join(kept) + _go_on(number)
        room -= len(line)
        kept.append(line)
    if not kept and offset > 1:
        raise ToolError(f"{path} has {number} lines; offset {offset} lies behind its end.")
    return "".join(kept) if kept else "[the file is empty]"


def _pieces(context: ToolContext, stream: BufferedReader, size: int) -> Iterator[tuple[bytes, bool]]:
    """The beginning of each line, at most ``size`` bytes, and whether that is all of it."""
    while line := stream.readline(size):
        is_whole = line.endswith(b"\n") or len(line) < size
        yield line, is_whole
        while not is_whole:
            rest = stream.readline(_SKIPPED_AT_ONCE)
            is_whole = rest.endswith(b"\n") or len(rest) < _SKIPPED_AT_ONCE
            _check_abort(context)


def _check_abort(context: ToolContext) -> None:
    if context.is_aborted():
        raise ToolError("Reading was stopped.")


def _go_on(line: int) -> str:
    return f"[cut here; go on with offset={line}]"
