"""One setting: its key, default and bounds, and whether a value fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from core.faults import kind_of, shown

Kind = Literal["text", "integer", "boolean", "choice", "list"]
LookUp = Callable[[str], Any]

MAX_TEXT = 4096
MAX_ITEMS = 500


@dataclass(frozen=True, slots=True)
class Setting:
    """One key. ``is_global``: read from the machine's file alone. ``restart``: in force from the next start.

    ``derived`` computes the default from other settings; ``default`` is then its value for the others'
    defaults. ``pattern`` is matched against a text or each item of a list; ``pattern_says`` puts it in words.
    """

    key: str
    kind: Kind
    default: Any
    help: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    pattern_says: str = ""
    secret: bool = False
    is_global: bool = False
    restart: bool = False
    derived: Callable[[LookUp], Any] | None = None
    default_says: str = ""

    @property
    def wanted(self) -> str:
        """The bound in words, as faults and the documentation give it."""
        if self.kind == "integer":
            return f"a whole number from {self.minimum} to {self.maximum}"
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "boolean":
            return "true or false"
        detail = f" ({self.pattern_says})" if self.pattern_says else ""
        return ("a list of texts" if self.kind == "list" else "text") + detail

    def problem(self, value: Any) -> str | None:
        """What stands there instead of what is wanted, or None; says nothing of a secret but its kind."""
        if self._fits(value):
            return None
        return kind_of(value) if self.secret else f"{shown(value)} ({kind_of(value)})"

    def _fits(self, value: Any) -> bool:
        match self.kind:
            case "integer":
                if isinstance(value, bool) or not isinstance(value, int):
                    return False
                return (self.minimum is None or value >= self.minimum) and (
                    self.maximum is None or value <= self.maximum
                )
            case "boolean":
                return isinstance(value, bool)
            case "choice":
                return isinstance(value, str) and value in self.choices
            case "list":
                return (
                    isinstance(value, list)
                    and len(value) <= MAX_ITEMS
                    and all(self._text_fits(item) for item in value)
                )
            case "text":
                return self._text_fits(value)

    def _text_fits(self, value: Any) -> bool:
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            return False
        if any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in value):
            return False
        return not self.pattern or re.fullmatch(self.pattern, value) is not None
