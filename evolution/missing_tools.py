"""Which tools an agent called in vain while it was tried: an evaluation hasn't got them. No Django."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evolution.artifacts.files import AttemptFiles
from sessions_app.logs import read_session
from sessions_app.tool_bundles import NOT_IN_EVALUATION

LEAF = "session"
"""The name of an evaluation session's logs in its folder."""

_SESSIONS = {"control": ("control",), "dry run": ("dry-run-1", "dry-run-2")}
_MARK = NOT_IN_EVALUATION.format(name="").strip().encode()


def missing_tools(files: AttemptFiles) -> list[str]:
    """In words, such as ``start_session (dry run)``; the last dry run is the one whose answer counts."""
    found = []
    for title, names in _SESSIONS.items():
        folder = next((f for f in map(files.session, reversed(names)) if f.is_dir()), None)
        if folder is not None:
            found += [f"{tool} ({title})" for tool in sorted(set(_refused(folder)))]
    return found


def _refused(folder: Path) -> Iterator[str]:
    try:
        if _MARK not in (folder / f"{LEAF}.ui.jsonl").read_bytes():
            return
    except OSError:
        return
    view, _ = read_session(folder, LEAF)
    for row in view.rows:
        for block in row.get("blocks", ()):
            text = (block.get("result") or {}).get("text", "")
            if block["type"] == "tool_call" and text == NOT_IN_EVALUATION.format(name=block["tool"]):
                yield block["tool"]
