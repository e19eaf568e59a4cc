"""Bytes to records: lines end at byte 0x0A only, a torn last line is told apart from damage in the middle."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

from core import collector
from sessions_app.logs.records import Record
from sessions_app.logs.shapes import fault_of


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
    if _scan_sound(data, result):
        return result
    offset = 0
    for line in data[: result.good_end - 1].split(b"\n"):
        record = _parse(line)
        if isinstance(record, dict):
            result.records.append(record)
        else:
            result.damages.append(Damage(offset, line, len(result.records), record))
        offset += len(line) + 1
    return result


def _scan_sound(data: bytes, result: Scan) -> bool:
    """The usual file, in one go: all of it UTF-8, every line a record. False, and nothing kept, otherwise.

    A line end may stand between the tokens of one JSON document, so each record's last line end is looked at,
    and all of them are counted: as many as there are records means that each has a line to itself.
    """
    records: list[Record] = []
    start = 0
    try:
        text = data[: result.good_end].decode()
        with collector.at_rest():
            while start < len(text):
                record, end = _decoder.raw_decode(text, start)
                if text[end] != "\n" or fault_of(record):
                    return False
                records.append(record)
                start = end + 1
    except (ValueError, RecursionError):
        return False
    if len(records) != text.count("\n"):
        return False
    result.records = records
    return True


def _parse(line: bytes) -> Record | str:
    """The record in ``line``, or what is wrong with it."""
    try:
        value = _decode(line.decode())
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    except (ValueError, RecursionError) as error:
        return "NUL bytes" if b"\0" in line else f"not JSON: {error}"
    return fault_of(value) or value


def _number(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


_decoder = json.JSONDecoder(parse_constant=str, parse_float=_number)
"""A ``NaN`` or ``1e999`` that some other program wrote becomes a text here: no view's parser takes the number."""
_decode = _decoder.decode
