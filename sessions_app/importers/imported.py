"""What every importer hands on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from sessions_app.logs.records import Message, Row


class ImportFailed(Exception):
    """The file can't be imported; nothing was. ``line`` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line


@dataclass(slots=True)
class Imported:
    """``rows_of[i]`` are the ids of the rows that show ``messages[i]``. ``left_out`` counts by reason."""

    title: str = ""
    messages: list[Message] = field(default_factory=list)
    rows_of: list[Sequence[str]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def exchanges(self) -> int:
        return sum(row["role"] == "user" for row in self.rows)
