"""What the file tools answer, read back into plain text and paths."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from agents.providers.offline.steps import Call, Result

_GO_ON = re.compile(r"\[cut here; go on with offset=(\d+)\]\s*\Z")
_EMPTY = "[the file is empty]"

Reading = Generator[tuple[Call, ...], tuple[Result, ...], str | None]


def read(path: str) -> Reading:
    """The whole text of a file, page by page; None when it can't be read."""
    text, offset = "", 1
    while True:
        arguments = {"path": path} if offset == 1 else {"path": path, "offset": offset}
        (result,) = yield (Call("file_read", arguments),)
        if not result.ok:
            return text or None
        more = _GO_ON.search(result.text)
        text += result.text[: more.start()] if more else result.text
        if more is None or int(more[1]) <= offset:
            return "" if text == _EMPTY else text
        offset = int(more[1])


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
