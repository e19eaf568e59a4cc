"""Reading typed values out of a mapping that a person wrote: each mistake a fault with its line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from core.faults import Fault, kind_of, shown
from core.safe_yaml import Document
from core.settings_schema import near_keys


class Fields:
    """One mapping of a document. Reading a key takes it off the list of unknown ones."""

    def __init__(
        self,
        mapping: Mapping[Any, Any],
        document: Document,
        where: str,
        faults: list[Fault],
        *,
        prefix: tuple[str, ...] = (),
        first_line: int = 1,
    ) -> None:
        self._mapping = mapping
        self._document = document
        self._where = where
        self._faults = faults
        self._prefix = prefix
        self._first_line = first_line
        self._read: set[str] = set()

    def has(self, key: str) -> bool:
        return key in self._mapping

    def text(self, key: str, *, default: str = "", required: bool = False) -> str:
        value = self._value(key)
        if value is None and not required:
            return default
        if not isinstance(value, str) or (required and not value.strip()):
            self._fault(key, value, "text; it is required" if required else "text")
            return default
        return value

    def choice(self, key: str, choices: Collection[str], *, default: str | None = None) -> str | None:
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, str) and value in choices:
            return value
        self._fault(key, value, "one of " + ", ".join(choices))
        return default

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._fault(key, value, "true or false")
            return default
        return value

    def number(self, key: str, *, minimum: int, maximum: int) -> int | None:
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            self._fault(key, value, f"a whole number from {minimum} to {maximum}")
            return None
        return value

    def fraction(self, key: str, *, default: float, minimum: float, maximum: float) -> float:
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
            self._fault(key, value, f"a number from {minimum} to {maximum}")
            return default
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self._fault(key, value, "a list of texts, such as [one, two]")
            return ()
        return tuple(value)

    def any_of(self, key: str, allowed: Collection[Any], wanted: str) -> Any:
        """A value that may be of several kinds; True and 1 are told apart."""
        value = self._value(key)
        if value is None or any(value == item and type(value) is type(item) for item in allowed):
            return value
        self._fault(key, value, wanted)
        return None

    def raw(self, key: str) -> Any:
        return self._value(key)

    def mapping(self, key: str) -> Fields | None:
        """The mapping below ``key``; None when there is none."""
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._fault(key, value, "a mapping")
            return None
        return self.below(value, key)

    def below(self, mapping: Mapping[Any, Any], *path: str) -> Fields:
        return Fields(
            mapping,
            self._document,
            self._where,
            self._faults,
            prefix=(*self._prefix, *path),
            first_line=self._first_line,
        )

    def everything(self) -> dict[str, Any]:
        return {str(key): value for key, value in self._mapping.items()}

    def rest(self) -> dict[str, Any]:
        """What no reader asked for."""
        return {str(key): value for key, value in self._mapping.items() if key not in self._read}

    def warn_unknown(self) -> dict[str, Any]:
        """Report what no reader asked for; it is kept. Returns it."""
        rest = self.rest()
        for key in rest:
            near = near_keys(key, among=self._read)
            hint = f"a known key ({' or '.join(near)}?)" if near else "a known key"
            self.report(key, "an unknown key", f"{hint}; it is kept", warning=True)
        return rest

    def report(self, key: str, found: str, wanted: str, *, warning: bool = False) -> None:
        path = (*self._prefix, key)
        line = self._document.line(*path)
        name = ".".join(part if part.isprintable() else shown(part) for part in path)[:200]
        self._faults.append(
            Fault(
                self._where,
                None if line is None else line + self._first_line - 1,
                name,
                found,
                wanted,
                "warning" if warning else "fault",
            )
        )

    def _value(self, key: str) -> Any:
        self._read.add(key)
        return self._mapping.get(key)

    def _fault(self, key: str, value: Any, wanted: str) -> None:
        found = "nothing" if value is None else f"{shown(value)} ({kind_of(value)})"
        self.report(key, found, wanted)
