"""Listing a folder."""

from __future__ import annotations

import os

from agents import files
from agents.tools.context import ToolContext
from agents.tools.tree import SKIPPED, entries, shown_name

AT_MOST = 1_000


def file_list(context: ToolContext, path: str = ".", recursive: bool = False) -> str:
    """List a folder: folders end with a slash, files show their size in bytes.

    Args:
        path: The folder, absolute or relative to the working directory.
        recursive: Go into sub-folders.
    """
    with files.walk(context.view, path) as place:
        folder = files.open_folder(place)
        where = place.path
    lines: list[str] = []
    more = False
    try:
        for entry in entries(context, folder, where, deep=recursive):
            if len(lines) == AT_MOST:
                more = True
                break
            name = shown_name(entry.relative)
            lines.append(f"{name}/" if entry.is_folder else f"{name}  {entry.info.st_size}")
    finally:
        os.close(folder)
    if more:
        lines.append(f"[only the first {AT_MOST} are shown; list a sub-folder or use glob]")
    return (
        "\n".join(lines) if lines else f"[nothing in {path}; {' and '.join(sorted(SKIPPED))} are never shown]"
    )
