"""Searching the content of files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agents import files, shell
from agents.tools.context import ToolContext, ToolError
from agents.tools.glob_pattern import GlobPattern
from agents.tools.line_search import LineSearch, TakesTooLong
from agents.tools.tree import SKIPPED, Entry, entries, shown_name

MATCHES_AT_MOST = 500
LINE_CHARS = 300
FILE_BYTES = 20 * 1024 * 1024
_COMPLAINT = re.compile(r"(rg: |regex parse error|error: )")


def grep(
    context: ToolContext, pattern: str, path: str = ".", include: str = "", ignore_case: bool = False
) -> str:
    """Search the content of text files for a regular expression; one line per match: file:line:text.

    Args:
        pattern: The regular expression.
        path: The file or folder to search, absolute or relative to the working directory.
        include: Search only files whose name matches this glob, such as *.py.
        ignore_case: Take upper and lower case for the same.
    """
    with files.walk(context.view, path) as place:
        if not place.exists:
            raise ToolError(f"{path} does not exist.")
        where = place.path
        program = shell.ripgrep(context.view)
        if program:
            found = _by_ripgrep(context, program, where, pattern, include, ignore_case)
        else:
            found = list(_by_hand(context, place, pattern, include, ignore_case))
    if not found:
        return f"[nothing in {path} matches {pattern}]"
    lines = found[:MATCHES_AT_MOST]
    if len(found) > MATCHES_AT_MOST:
        lines.append(f"[only the first {MATCHES_AT_MOST} matches are shown; narrow the pattern or the path]")
    return "\n".join(lines)


def _by_ripgrep(
    context: ToolContext, program: str, where: Path, pattern: str, include: str, ignore_case: bool
) -> list[str]:
    arguments = [
        program,
        "--no-config",
        "--no-messages",
        "--no-heading",
        "--with-filename",
        "--line-number",
        "--color=never",
    ]
    arguments += [
        "--no-ignore",
        "--hidden",
        "--sort=path",
        f"--max-columns={LINE_CHARS}",
        "--max-columns-preview",
    ]
    arguments += ["--max-filesize=20M", *(f"--glob=!{name}" for name in sorted(SKIPPED))]
    arguments += [f"--glob={include}"] if include else []
    arguments += ["--ignore-case"] if ignore_case else []
    folder = where if where.is_dir() else where.parent
    target = "." if folder == where else where.name
    outcome = shell.run(context, [*arguments, "--regexp", pattern, "--", target], folder=folder)
    if outcome.ended_by == "excess":
        raise ToolError(f"The search was ended: {outcome.excess}. Search a narrower path.")
    if outcome.exit_code == 2 and _COMPLAINT.match(outcome.text):
        raise ToolError(f"The search failed: {outcome.text.strip()[:500]}")
    return [line[2:] if line.startswith("./") else line for line in outcome.text.split("\n") if line]


def _by_hand(
    context: ToolContext, place: files.Place, pattern: str, include: str, ignore_case: bool
) -> Iterator[str]:
    names = GlobPattern(include) if include else None
    left, name = MATCHES_AT_MOST + 1, "its beginning"
    search = LineSearch(
        pattern, ignore_case=ignore_case, line_chars=LINE_CHARS, is_aborted=context.is_aborted
    )
    try:
        with search:
            if search.complaint:
                raise ToolError(f"{pattern!r} is not a valid regular expression: {search.complaint}.")
            for name, descriptor in _text_files(context, place):
                with os.fdopen(descriptor, "rb") as stream:
                    if names and not names.matches(name):
                        continue
                    content = stream.read(FILE_BYTES)
                if b"\0" in content[:8192]:
                    continue
                found = search.lines(content, at_most=left)
                yield from (f"{shown_name(name)}:{number}:{line}" for number, line in found)
                left -= len(found)
                if left <= 0:
                    return
    except TakesTooLong:
        raise ToolError(
            f"The search was ended in {shown_name(name)}: the pattern takes too long there. Write it without "
            "repetitions inside of repetitions, or search a narrower path."
        ) from None


def _text_files(context: ToolContext, place: files.Place) -> Iterator[tuple[str, int]]:
    """Names and open descriptors of the regular files at or below ``place``."""
    try:
        folder = files.open_folder(place)
    except ToolError:
        yield place.path.name, files.open_for_reading(place)
        return
    try:
        for entry in entries(context, folder, place.path, deep=True):
            descriptor = _opened(entry) if entry.is_file else None
            if descriptor is not None:
                yield entry.relative, descriptor
    finally:
        os.close(folder)


def _opened(entry: Entry) -> int | None:
    try:
        return entry.open()
    except OSError:
        return None
