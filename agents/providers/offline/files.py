"""What the file tools answer, read back into plain text and paths."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from agents.providers.offline.steps import Call, Result

_GO_ON = re.compile(r"\[cut here; go on with offset=(\d+)\]\s*\Z")
_LONG_LINE = re.compile(r"\n\[line (\d+) is longer than that;[^\n]*\]\s*\Z")
_HAS_LINES = re.compile(r"has (\d+) lines")
_EMPTY = "[the file is empty]"
_BEHIND_ANY_END = 1_000_000_000
_TAIL_LINES = 1_500
_TAIL_PAGES = 40

Reading = Generator[tuple[Call, ...], tuple[Result, ...], str | None]


class NotWholeError(OSError):
    """A file that the tools don't show whole: writing it back would lose text."""


def read(path: str) -> Reading:
    """The whole text of a file, page by page; None when there is none. Raises NotWholeError."""
    text, offset = "", 1
    while True:
        arguments = {"path": path} if offset == 1 else {"path": path, "offset": offset}
        (result,) = yield (Call("file_read", arguments),)
        if (not result.ok and "bytes, more than" in result.text) or _LONG_LINE.search(result.text):
            raise NotWholeError(f"{path} is too large, or a line of it too long, to be read whole.")
        if not result.ok:
            return text or None
        more = _GO_ON.search(result.text)
        text += result.text[: more.start()] if more else result.text
        if more is None:
            return "" if text == _EMPTY else text
        offset = int(more[1])


def read_tail(path: str) -> Reading:
    """The last lines of a file that may be long; its longest lines may be cut. None when it can't be read."""
    (result,) = yield (Call("file_read", {"path": path, "limit": 2_000}),)
    if not result.ok or not (_GO_ON.search(result.text) or _LONG_LINE.search(result.text)):
        return result.text if result.ok else None
    (behind,) = yield (Call("file_read", {"path": path, "offset": _BEHIND_ANY_END}),)
    known = _HAS_LINES.search(behind.text)
    offset = max(1, int(known[1]) - _TAIL_LINES) if known else 1
    text = ""
    for _ in range(_TAIL_PAGES):
        (result,) = yield (Call("file_read", {"path": path, "offset": offset, "limit": 2_000}),)
        more, long = _GO_ON.search(result.text), _LONG_LINE.search(result.text)
        cut = more or long
        text += result.text[: cut.start()] if cut else result.text
        if not result.ok or cut is None:
            break
        offset = int(cut[1]) + (1 if long else 0)
        text += "\n" if long else ""
    return text


def first_pages(paths: Sequence[str]) -> Generator[tuple[Call, ...], tuple[Result, ...], list[str]]:
    """As much of each file as one call shows, all called for at once; what can't be read is empty."""
    if not paths:
        return []
    results = yield tuple(Call("file_read", {"path": path}) for path in paths)
    return [_GO_ON.sub("", result.text) if result.ok else "" for result in results]


def write(path: str, text: str) -> Generator[tuple[Call, ...], tuple[Result, ...], None]:
    """Raises OSError with the tool's own words when it refuses."""
    (result,) = yield (Call("file_write", {"path": path, "content": text}),)
    if not result.ok:
        raise OSError(f"{path} could not be written: {result.text}")


def found(result: Result, folder: str, *, suffix: str) -> list[str]:
    """The paths of a glob below ``folder``, in name order (the tool lists the newest first)."""
    lines = result.text.splitlines() if result.ok else []
    return sorted(f"{folder}/{line}" for line in lines if line.endswith(suffix) and not line.startswith("["))


def hits(result: Result, folder: str, candidates: Sequence[str]) -> dict[str, list[str]]:
    """Matching lines of a grep in ``folder`` by the candidate path they name at their start."""
    lines: dict[str, list[str]] = {}
    for line in result.text.splitlines() if result.ok else []:
        for path in candidates:
            if line.startswith(f"{path.removeprefix(folder + '/')}:"):
                lines.setdefault(path, []).append(line.partition(":")[2])
    return lines


def lines_of(text: str) -> list[str]:
    """Without line ends of either kind."""
    return [line.removesuffix("\r") for line in text.split("\n")] if text else []


def joined(lines: Sequence[str], *, like: str) -> str:
    """One text again, with the line ends of ``like`` and one at its end."""
    end = "\r\n" if "\r\n" in like else "\n"
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    return end.join([*kept, ""]) if kept else ""
