"""Measures and amounts of money: found, counted, and written the other way."""

from __future__ import annotations

import re
from collections.abc import Callable

_NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?)"
_FACTORS: dict[str, tuple[str, float]] = {
    "in": ("mm", 25.4),
    "inch": ("mm", 25.4),
    "inches": ("mm", 25.4),
    "ft": ("m", 0.3048),
    "feet": ("m", 0.3048),
    "miles": ("km", 1.609),
    "lb": ("kg", 0.4536),
    "lbs": ("kg", 0.4536),
    "pounds": ("kg", 0.4536),
    "oz": ("g", 28.35),
    "psi": ("bar", 0.06895),
    "ft-lb": ("Nm", 1.356),
}
_BACK: dict[str, tuple[str, float]] = {
    "mm": ("in", 1 / 25.4),
    "cm": ("in", 1 / 2.54),
    "m": ("ft", 1 / 0.3048),
    "km": ("miles", 1 / 1.609),
    "kg": ("lb", 1 / 0.4536),
    "g": ("oz", 1 / 28.35),
    "bar": ("psi", 1 / 0.06895),
    "Nm": ("ft-lb", 1 / 1.356),
}
_IMPERIAL = re.compile(
    rf"\b{_NUMBER}[ -]?({'|'.join(sorted(map(re.escape, _FACTORS), key=len, reverse=True))})\b"
)
_METRIC = re.compile(rf"\b{_NUMBER} ?({'|'.join(sorted(_BACK, key=len, reverse=True))})\b")
_SIGNS = {"€": "EUR", "£": "GBP", "$": "USD"}
_CODES = {code: sign for sign, code in _SIGNS.items()}
_WITH_SIGN = re.compile(r"([€£$]) ?(\d+(?:[.,]\d+)*)|(\d+(?:[.,]\d+)*) ?([€£$])")
_WITH_CODE = re.compile(r"\b(\d+(?:[.,]\d+)*) ?(EUR|GBP|USD)\b|\b(EUR|GBP|USD) ?(\d+(?:[.,]\d+)*)")


def counts(text: str, value: str) -> tuple[int, int]:
    """How many measures (or amounts) of the text are written as ``value`` asks, and how many aren't."""
    good, bad = {
        "metric": (_METRIC, _IMPERIAL),
        "imperial": (_IMPERIAL, _METRIC),
        "currency code": (_WITH_CODE, _WITH_SIGN),
        "currency sign": (_WITH_SIGN, _WITH_CODE),
    }[value]
    return len(good.findall(text)), len(bad.findall(text))


def amounts(text: str) -> int:
    """How many amounts of money the text names, however they are written."""
    return len(_WITH_SIGN.findall(text)) + len(_WITH_CODE.findall(text))


def convert(text: str, value: str) -> str:
    if value == "metric":
        return _IMPERIAL.sub(_by(_FACTORS), text)
    if value == "imperial":
        return _METRIC.sub(_by(_BACK), text)
    if value == "currency code":
        return _WITH_SIGN.sub(lambda found: f"{found[2] or found[3]} {_SIGNS[found[1] or found[4]]}", text)
    return _WITH_CODE.sub(lambda found: f"{_CODES[found[2] or found[3]]}{found[1] or found[4]}", text)


def _by(table: dict[str, tuple[str, float]]) -> Callable[[re.Match[str]], str]:
    def write(found: re.Match[str]) -> str:
        unit, factor = table[found[2]]
        value = float(found[1].replace(",", "")) * factor
        return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"

    return write
