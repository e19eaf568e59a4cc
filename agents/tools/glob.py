"""Finding files by name."""

from __future__ import annotations

import os
import re

from agents import files
from agents.tools.context import ToolContext, ToolError
from agents.tools.tree import entries, shown_name

AT_MOST = 500


def glob(context: ToolContext, pattern: str, path: str = ".") -> str:
    """Find files by a pattern such as **/*.md, newest first. .git and node_modules are skipped.

    Args:
        pattern: * and ? match within a name, ** across folders, {a,b} either, [ab] one character.
        path: The folder to search, absolute or relative to the working directory.
    """
    matches = compiled(pattern)
    found = []
    with files.walk(context.view, path) as place:
        folder = files.open_folder(place)
        where = place.path
    try:
        for entry in entries(context, folder, where, deep=True):
            if entry.is_file and matches.fullmatch(entry.relative):
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


def compiled(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over relative paths; without a slash it matches in any folder."""
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    try:
        return re.compile(_translated(pattern))
    except re.error as error:
        raise ToolError(f"{pattern!r} is not a valid pattern: {error}.") from None


def _translated(pattern: str) -> str:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\]|\{|\}|,)", pattern)
    plain = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    depth = 0
    out = []
    for piece in pieces:
        if piece in plain:
            out.append(plain[piece])
        elif piece == "{":
            depth += 1
            out.append("(?:")
        elif piece == "}" and depth:
            depth -= 1
            out.append(")")
        elif piece == "," and depth:
            out.append("|")
        elif len(piece) > 2 and piece[0] == "[" and piece[-1] == "]":
            inner = piece[1:-1].replace("\\", "\\\\")
            out.append("[" + ("^" + inner[1:] if inner[0] == "!" else inner) + "]")
        else:
            out.append(re.escape(piece))
    return "".join(out) + ")" * depth
