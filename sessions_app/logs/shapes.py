"""What a record must look like for the folds to take it; anything else counts as damage, whoever wrote it.

Only what the readers rely on is asked for: a field that a later version adds is no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MAX_EPOCH = 2**62
"""Above it no lease could be taken that succeeds the writer: the row's column ends at 2**63."""

MAX_SEQ = 2**53
"""Numbers above it aren't whole in every reader's language."""
MAX_STEP = 2**32
"""A record whose number is further than this from the last one's has lost its place: no log loses so many."""

_NEVER_SET = frozenset({"id", "role", "at", "stamp", "blocks"})
_NEEDS_CALL = frozenset({"tool-call", "tool-return"})
_HOLDS: Mapping[str, type | tuple[type, ...]] = {"text": str, "thinking": str, "user-prompt": (str, list)}
MAX_PLACE_DIGITS = 9
_TEXTS = frozenset({str})
_MAPPINGS = frozenset({dict})


def fault_of(record: object) -> str:
    """Why this isn't a record of either log; empty when it is one, or of a type nobody knows yet."""
    if not isinstance(record, dict) or not isinstance(kind := record.get("t"), str):
        return "not a record"
    epoch = record.get("e", 0)
    if type(epoch) is not int or not 0 <= epoch < MAX_EPOCH:
        return "not a record: its epoch is no number"
    seq = record.get("seq", 0)
    if type(seq) is not int or not 0 <= seq < MAX_SEQ:
        return "not a record: its seq is no number"
    if (is_good := _SHAPES.get(kind)) is None:
        return ""
    try:
        good = is_good(record)
    except (KeyError, TypeError):  # a field that isn't there, or one of a value that has no fields
        good = False
    return "" if good else f"not a record: its {kind} is incomplete"


def _is_message(record: Mapping[str, Any]) -> bool:
    message = record["m"]
    parts = message["parts"]
    return (
        _is_number(record["n"])
        and message["kind"] in ("request", "response")
        and isinstance(parts, list)
        and all(map(_is_part, parts))
        and _is_list_of(_TEXTS, record.get("rows", []))
        and isinstance(record.get("covers", ""), str)
    )


def _is_added_part(record: Mapping[str, Any]) -> bool:
    return _is_number(record["n"]) and _is_part(record["p"])


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_SEQ


def _is_part(part: Any) -> bool:
    kind, call_id = part["part_kind"], part.get("tool_call_id")
    if kind in _NEEDS_CALL:
        return isinstance(call_id, str) and isinstance(part["tool_name"], str)
    if not isinstance(kind, str) or not (call_id is None or isinstance(call_id, str)):
        return False
    held = _HOLDS.get(kind)
    return held is None or isinstance(part["content"], held)


def _is_add(record: Mapping[str, Any]) -> bool:
    row = record["row"]
    role = row["role"]
    return (
        isinstance(row["id"], str)
        and isinstance(role, str)
        and isinstance(row.get("stamp", ""), str)
        and isinstance(record.get("before", ""), str)
        and (role != "assistant" or _are_blocks(row["blocks"]))
    )


def _is_inflight(record: Mapping[str, Any]) -> bool:
    blocks = record["blocks"]
    return (
        isinstance(record["id"], str)
        and isinstance(record.get("at", ""), str)
        and isinstance(blocks, dict)
        and all(_is_place(key) and _is_block(block) for key, block in blocks.items())
    )


def _are_blocks(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_block, value))


def _is_block(block: object) -> bool:
    return isinstance(block, dict) and isinstance(block.get("call_id", ""), str)


def _is_place(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= MAX_PLACE_DIGITS


def _is_set(record: Mapping[str, Any]) -> bool:
    field = record["field"]
    return isinstance(record["id"], str) and isinstance(field, str) and field not in _NEVER_SET


def _is_drop(record: Mapping[str, Any]) -> bool:
    return isinstance(record["id"], str)


def _is_late(record: Mapping[str, Any]) -> bool:
    return _is_list_of(_MAPPINGS, record["records"])


def _is_head(record: Mapping[str, Any]) -> bool:
    return (
        _is_number(record["seq"])
        and _is_number(record["archived"])
        and _is_list_of(_TEXTS, record.get("moved", []))
        and _is_list_of(_TEXTS, record.get("stamps", []))
    )


def _is_list_of(kinds: frozenset[type], value: object) -> bool:
    return isinstance(value, list) and kinds.issuperset(map(type, value))


_SHAPES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "msg": _is_message,
    "part": _is_added_part,
    "add": _is_add,
    "inflight": _is_inflight,
    "set": _is_set,
    "drop": _is_drop,
    "late": _is_late,
    "head": _is_head,
}
