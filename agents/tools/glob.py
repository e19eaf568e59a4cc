"""Finding files by name."""

from __future__ import annotations

import os

from agents import files
from agents.tools.context import ToolContext
from agents.tools.glob_pattern import GlobPattern
from agents.tools.tree import entries, shown_name

AT_MOST = 500


def glob(context: ToolContext, pattern: str, path: str = ".") -> str:
    """Find files by a pattern such as **/*.md, newest first. .git and node_modules are skipped.

    Args:
        pattern: * and ? match within a name, ** across folders, {a,b} either, [ab] one character.
        path: The folder to search, absolute or relative to the working directory.
    """
    wanted = GlobPattern(pattern)
    found = []
    with files.walk(context.view, path) as place:
        folder = files.open_folder(place)
        where = place.path
    try:
        for entry in entries(context, folder, where, deep=True):
            if entry.is_file and wanted.matches(entry.relative):
                found.append((-entry.info.st_mtime, entry.relative))
    finally:
        os.close(folder)
    if not found:
        return f"[no file below {path} matches {pattern}]"
    found.sort()
    lines = [shown_name(relative) for _, relative in found[:AT_MOST]]
    if len(found) > AT_MOST:
        lines.append(f"[{len(found) - AT_MOST} more are not shown; narrow the pattern]")
    return "\n".join(lines)
