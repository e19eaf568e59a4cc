"""A mistake in a file that a person wrote: shown where they look, never raised at them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["fault", "warning"]


@dataclass(frozen=True, slots=True)
class Fault:
    """``file`` is a path as the person knows it; ``line`` counts from 1, None where a line means nothing.

    ``found`` never holds the value of a secret. A ``warning`` changes nothing (an unknown key is kept); a
    ``fault`` means that what stands in the file isn't in force.
    """

    file: str
    line: int | None
    key: str
    found: str
    wanted: str
    severity: Severity = "fault"

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        subject = f" {self.key}:" if self.key else ""
        return f"{place}:{subject} found {self.found}; wanted {self.wanted}."

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def shown(value: Any, *, limit: int = 60) -> str:
    """A value in a fault: its own spelling, cut, with control and direction-changing characters escaped."""
    text = ascii(value) if not isinstance(value, str) else _visible(repr(value))
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _visible(text: str) -> str:
    """Escape what prints as nothing or turns the line around (zero-width, right-to-left)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


KINDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a whole number"}


def kind_of(value: Any) -> str:
    """The YAML name of a value's type, for sentences."""
    if value is None:
        return "nothing"
    return KINDS.get(type(value), type(value).__name__)
