"""Writing a whole file."""

from __future__ import annotations

from agents import files
from agents.tools.context import ToolContext, ToolError

BYTES = 10 * 1024 * 1024


def file_write(context: ToolContext, path: str, content: str) -> str:
    """Write a file, replacing what was there. Missing parent folders are made.

    Args:
        path: The file, absolute or relative to the working directory.
        content: The whole new content.
    """
    data = content.encode("utf-8", "surrogatepass")
    if len(data) > BYTES:
        raise ToolError(f"The content has {len(data):,} bytes, more than {BYTES:,}; write it in parts.")
    with files.walk(context.view, path, make_folders=True) as place:
        existed = place.exists
        files.replace_file(context.view, place, data)
    return f"{'Replaced' if existed else 'Created'} {path} ({len(data):,} bytes)."
