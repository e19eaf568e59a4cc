"""Replacing an exact piece of a file."""

from __future__ import annotations

import os

from agents import files
from agents.tools.context import ToolContext, ToolError
from agents.tools.file_write import BYTES


def file_edit(
    context: ToolContext, path: str, old_text: str, new_text: str, replace_all: bool = False
) -> str:
    """Replace a piece of a file. The piece must occur exactly once, unless replace_all is true.

    Args:
        path: The file, absolute or relative to the working directory.
        old_text: The exact text to replace, white space included.
        new_text: What to put in its place.
        replace_all: Replace every occurrence.
    """
    if not old_text:
        raise ToolError("old_text is empty; use file_write to write a whole file.")
    if old_text == new_text:
        raise ToolError("old_text and new_text are the same; nothing to do.")
    with files.walk(context.view, path) as place:
        files.check_writable(context.view, place.path)
        with os.fdopen(files.open_for_reading(place), "rb") as stream:
            content = stream.read(BYTES + 1)
        if len(content) > BYTES:
            raise ToolError(f"{path} is larger than {BYTES:,} bytes; edit it with shell_exec.")
        old, new = old_text.encode("utf-8", "surrogatepass"), new_text.encode("utf-8", "surrogatepass")
        count = content.count(old)
        if count == 0:
            raise ToolError(f"old_text does not occur in {path}; read the file and copy the piece exactly.")
        if count > 1 and not replace_all:
            raise ToolError(
                f"old_text occurs {count} times in {path}; add lines around it to make it unique, "
                "or set replace_all."
            )
        if len(content) + count * (len(new) - len(old)) > BYTES:
            raise ToolError(f"{path} would become larger than {BYTES:,} bytes; edit it with shell_exec.")
        files.replace_file(context.view, place, content.replace(old, new))
    return f"Replaced {count} occurrence{'s' if count > 1 else ''} in {path}."
