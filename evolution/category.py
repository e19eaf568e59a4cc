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
        return same_keys(one, other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def same_keys(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return {(type(key), key) for key in one} == {(type(key), key) for key in other}


def changed_keys(before: dict[Any, Any], after: dict[Any, Any]) -> list[Any]:
    """Keys added, removed or with another value, in the order they stand in."""
    kept = [key for key in before if key not in after or not same(before[key], after[key])]
    return kept + [key for key in after if key not in before]


def is_off(value: Any) -> bool:
    """Whether a switch that restricts is surely off; whatever can't be understood counts as on."""
    return value is None or value is False or (isinstance(value, str) and value.strip().lower() == "false")
