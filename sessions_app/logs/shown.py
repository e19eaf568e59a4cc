"""Values of a log as every encoder and template takes them, whatever a model or a stranger wrote."""

from __future__ import annotations

from typing import Any

from core.texts import MAX_DEPTH, encodable

DEEPEST = 200
"""What encoders take at the most, for whoever wants all that a log holds."""
TOO_DEEP = "(nested too deeply to be shown)"


def shown(value: Any, depth: int = MAX_DEPTH) -> Any:
    """``value`` without half characters, cut where it nests deeper than ``depth``."""
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return TOO_DEEP
    if isinstance(value, list):
        return [shown(item, depth - 1) for item in value]
    return {encodable(key): shown(item, depth - 1) for key, item in value.items()}
