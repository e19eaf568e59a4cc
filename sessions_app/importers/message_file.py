"""A file of messages, however it is written: a JSON array, an object that holds one, or one message a line.

Every message comes with the line on which it begins, so that an error can name it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from core.texts import MAX_DEPTH, encodable_value, nests_deeper
from sessions_app.importers.imported import ImportFailed

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Said:
    """One message; ``line`` counts from 1."""

    line: int
    value: dict[str, Any]

    @property
    def role(self) -> str:
        return str(self.value.get("role", ""))


@dataclass(slots=True)
class MessageFile:
    """``around``: the other fields of the object that holds the messages, if there is one."""

    messages: list[Said] = field(default_factory=list)
    around: dict[str, Any] = field(default_factory=dict)
    last_line: int = 1


def read_messages(data: bytes, *, key: str = "messages") -> MessageFile:
    """Raises ImportFailed with the line for whatever isn't such a file."""
    text = _decoded(data)
    start = _behind_space(text, 0)
    found = MessageFile(last_line=text.rstrip().count("\n") + 1)
    if text.startswith("[", start):
        found.messages, end = _array(text, start, 1 + text.count("\n", 0, start))
        _nothing_behind(text, end)
        return found
    values = list(_values(text))
    if len(values) == 1 and isinstance(values[0][1].get(key), list):
        value = values[0][1]
        place = _place_of(text, key)
        found.messages, _ = _array(text, place, 1 + text.count("\n", 0, place))
        found.around = {name: item for name, item in value.items() if name != key}
    else:
        for line, value in values:
            if key in value and "role" not in value:
                raise ImportFailed(line, "several conversations are in this file; import them one by one")
            found.messages.append(Said(line, value))
    return found


def _decoded(data: bytes) -> str:
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ImportFailed(line, f"not UTF-8 (byte {error.start} of the file)") from error


def _behind_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _values(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects behind one another, with the line on which each begins."""
    position, line, counted = _behind_space(text, 0), 1, 0
    while position < len(text):
        line, counted = line + text.count("\n", counted, position), position
        value, position = _value(text, position, line)
        yield line, _checked(value, line)
        position = _behind_space(text, position)


def _array(text: str, start: int, line: int) -> tuple[list[Said], int]:
    """The objects of the array that begins at ``start``, and where it ends."""
    messages: list[Said] = []
    counted, position = start, _behind_space(text, start + 1)
    if text.startswith("]", position):
        return messages, position + 1
    while True:
        line, counted = line + text.count("\n", counted, position), position
        value, position = _value(text, position, line)
        messages.append(Said(line, _checked(value, line)))
        position = _behind_space(text, position)
        line, counted = line + text.count("\n", counted, position), position
        mark = text[position : position + 1]
        if mark == "]":
            return messages, position + 1
        if mark != ",":
            raise ImportFailed(line, "not JSON (a comma or ] is expected behind this message)")
        position = _behind_space(text, position + 1)


def _place_of(text: str, key: str) -> int:
    """Where the value of ``key`` begins in the object that ``text`` is; the last one's, as for the parser."""
    found = 0
    position = _behind_space(text, _behind_space(text, 0) + 1)
    while text.startswith('"', position):
        name, position = _DECODER.raw_decode(text, position)
        position = _behind_space(text, _behind_space(text, position) + 1)  # the colon
        if name == key:
            found = position
        _, position = _DECODER.raw_decode(text, position)
        position = _behind_space(text, _behind_space(text, position) + 1)  # the comma
    return found


def _value(text: str, position: int, line: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise ImportFailed(error.lineno, f"not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise ImportFailed(line, f"not JSON ({error})") from error


def _checked(value: Any, line: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ImportFailed(line, f"a message (a JSON object) is expected, this is {type(value).__name__}")
    if nests_deeper(value):
        raise ImportFailed(line, f"nested deeper than {MAX_DEPTH} levels")
    checked: dict[str, Any] = encodable_value(value)
    return checked


def _nothing_behind(text: str, end: int) -> None:
    rest = _behind_space(text, end)
    if rest < len(text):
        raise ImportFailed(text.count("\n", 0, rest) + 1, "something stands behind the end of the list")
