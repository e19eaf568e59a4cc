"""Bytes to records: lines end at byte 0x0A only, a torn last line is told apart from damage in the middle."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sessions_app.logs.records import Record


@dataclass(frozen=True, slots=True)
class Damage:
    """A whole line (without its 0x0A) that is no record; ``before`` counts the good records ahead of it."""

    offset: int
    data: bytes
    before: int
    why: str


@dataclass(slots=True)
class Scan:
    """``good_end``: the offset behind the last 0x0A; ``torn`` bytes behind it are of an unfinished write."""

    data: bytes = b""
    records: list[Record] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    good_end: int = 0
    torn: int = 0


def scan(data: bytes) -> Scan:
    """Split and parse ``data``; never raises, whatever the bytes are."""
    result = Scan(data=data)
    result.good_end = data.rfind(b"\n") + 1
    result.torn = len(data) - result.good_end
    if not result.good_end:
        return result
    offset = 0
    for line in data[: result.good_end - 1].split(b"\n"):
        record = _parse(line)
        if isinstance(record, dict):
            result.records.append(record)
            result.offsets.append(offset)
        else:
            result.damages.append(Damage(offset, line, len(result.records), record))
        offset += len(line) + 1
    return result


def _parse(line: bytes) -> Record | str:
    try:
        value = _decode(line.decode())
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    except (ValueError, RecursionError) as error:
        return "NUL bytes" if b"\0" in line else f"not JSON: {error}"
    if not isinstance(value, dict) or not isinstance(value.get("t"), str):
        return "not a record"
    if not isinstance(value.get("e", 0), int):
        return "not a record: its epoch is no number"
    return value


_decode = json.JSONDecoder().decode
