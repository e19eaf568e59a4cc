"""Text as every database takes it: PostgreSQL knows no NUL, and no database a lone surrogate."""

from __future__ import annotations

from typing import Any


def storable(value: Any) -> Any:
    """``value`` with NUL and lone surrogates in its texts replaced; mappings and lists are gone through.

    What models, files and terminals hand us may hold either, and a row must be able to say so.
    """
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
