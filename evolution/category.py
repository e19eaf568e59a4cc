"""How far a change reaches, and the comparison of YAML values that decides it. Pure; no Django."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core import safe_yaml


class Category(StrEnum):
    """From harmless to never by itself; ``rank`` orders them."""

    PROMPT = "prompt"
    CAPABILITY = "capability"
    MANUAL = "manual"

    @property
    def rank(self) -> int:
        return list(Category).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference inside a file."""

    category: Category
    why: str


def strictest(findings: Iterable[Finding]) -> Finding | None:
    """The first of the strictest findings; None when there are none."""
    return max(findings, key=lambda finding: finding.category.rank, default=None)


def manual(why: str) -> Finding:
    return Finding(Category.MANUAL, why)


class Unreadable(ValueError):
    """A file whose meaning can't be told; the text says why."""


def read_mapping(data: bytes) -> dict[Any, Any]:
    """One YAML mapping. Raises Unreadable, also for a key given twice with different values."""
    try:
        document = safe_yaml.load(data)
    except safe_yaml.YamlError as error:
        raise Unreadable(f"it doesn't parse: {error}") from error
    for repeated in document.repeated:
        if repeated.conflicting:
            raise Unreadable(f"line {repeated.line}: {'.'.join(repeated.path)} is given twice in conflict")
    if not isinstance(document.value, dict):
        raise Unreadable("it doesn't parse: it is no mapping of keys")
    return document.value


def same(one: Any, other: Any) -> bool:
    """Equal in value *and* type, all the way down: to YAML ``1`` and ``true`` differ, to Python they don't."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return not changed_keys(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, set):
        return {_spelled(item) for item in one} == {_spelled(item) for item in other}
    return _spelled(one) == _spelled(other)


def changed_keys(before: dict[Any, Any], after: dict[Any, Any]) -> list[Any]:
    """Keys added, removed or with another value, in the order they stand in."""
    old, new = ({_spelled(key): value for key, value in one.items()} for one in (before, after))
    kept = [key for key in before if not _holds(new, key, old[_spelled(key)])]
    return kept + [key for key in after if _spelled(key) not in old]


def _holds(values: dict[tuple[type, str], Any], key: Any, value: Any) -> bool:
    spelled = _spelled(key)
    return spelled in values and same(value, values[spelled])


def _spelled(scalar: Any) -> tuple[type, str]:
    """Apart what Python calls equal: ``1`` and ``true``, ``0.0`` and ``-0.0``, one moment in two time zones."""
    return type(scalar), repr(scalar)


def is_off(value: Any) -> bool:
    """Whether a switch that restricts is surely off; whatever can't be understood counts as on."""
    return value is None or value is False or (isinstance(value, str) and value.strip().lower() == "false")
