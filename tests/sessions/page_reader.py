"""A reader of session logs written from docs/sessions.md alone: it imports nothing of Halo."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any


def lines(data: bytes) -> list[dict[str, Any] | None]:
    """*Lines*: whole lines only; None for a damaged one."""
    return [record(line) for line in data.split(b"\n")[:-1]]


def record(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=str, parse_float=number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and is_formed(value) else None


def number(text: str) -> float | str:
    return text if float(text) in (float("inf"), float("-inf")) else float(text)


def is_formed(found: dict[str, Any]) -> bool:
    """*Forms*."""
    kind = found.get("t")
    if not isinstance(kind, str) or not is_whole(found.get("e", 0), 2**62):
        return False
    if not is_whole(found.get("seq", 0), 2**53):
        return False
    match kind:
        case "msg":
            return is_whole(found.get("n"), 2**53) and is_message(found.get("m")) and are_texts(found, "rows")
        case "part":
            return is_whole(found.get("n"), 2**53) and is_part(found.get("p"))
        case "head":
            return (
                "seq" in found
                and is_whole(found.get("archived"), 2**53)
                and are_texts(found, "moved")
                and are_texts(found, "stamps")
            )
        case "add":
            return is_row(found.get("row")) and isinstance(found.get("before", ""), str)
        case "inflight":
            blocks = found.get("blocks")
            return (
                isinstance(found.get("id"), str)
                and isinstance(found.get("at", ""), str)
                and isinstance(blocks, dict)
                and all(re.fullmatch("[0-9]{1,9}", place) for place in blocks)
                and all(map(is_block, blocks.values()))
            )
        case "set":
            field = found.get("field")
            never = ("id", "role", "at", "stamp", "blocks")
            return isinstance(found.get("id"), str) and isinstance(field, str) and field not in never
        case "drop":
            return isinstance(found.get("id"), str)
        case "late":
            records = found.get("records")
            return isinstance(records, list) and all(isinstance(entry, dict) for entry in records)
    return True


def is_whole(value: object, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def are_texts(found: dict[str, Any], name: str) -> bool:
    value = found.get(name, [])
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def is_message(value: object) -> bool:
    if not isinstance(value, dict) or value.get("kind") not in ("request", "response"):
        return False
    parts = value.get("parts")
    return isinstance(parts, list) and all(map(is_part, parts))


def is_part(part: object) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("tool_call_id"), str | None):
        return False
    match part.get("part_kind"):
        case "text" | "thinking":
            return isinstance(part.get("content"), str)
        case "user-prompt":
            return isinstance(part.get("content"), str | list)
        case "tool-call" | "tool-return":
            return isinstance(part.get("tool_call_id"), str) and isinstance(part.get("tool_name"), str)
    return isinstance(part.get("part_kind"), str)


def is_row(row: object) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("stamp", ""), str):
        return False
    if not isinstance(row.get("id"), str) or not isinstance(row.get("role"), str):
        return False
    blocks = row.get("blocks")
    return row["role"] != "assistant" or (isinstance(blocks, list) and all(map(is_block, blocks)))


def is_block(block: object) -> bool:
    return isinstance(block, dict) and isinstance(block.get("call_id", ""), str)


def raw(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """*The raw log*: its messages, and the late records."""
    messages: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    place: dict[int, int] = {}
    epoch, last = 0, -1
    for found in lines(path.read_bytes() if path.exists() else b""):
        if found is None:
            continue
        if found.get("e", 0) < epoch:
            late.append(found)
            continue
        epoch = found.get("e", 0)
        if found["t"] == "msg" and found["n"] > last:
            last = found["n"]
            place[last] = len(messages)
            messages.append(found["m"])
        elif found["t"] == "part" and found["n"] in place:
            messages[place[found["n"]]]["parts"].append(found["p"])
    return messages, late


def ui(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """*The ui log*: rows, and how many segments the head counts. Damaged lines and late records become rows."""
    order: list[str] = []
    rows: dict[str, dict[str, Any]] = {}
    before: dict[str, str] = {}
    late: list[Any] = []
    finished: set[str] = set()
    epoch = seq = archived = damaged = orphans = 0

    def show(row: dict[str, Any]) -> None:
        if row["id"] not in rows:
            order.append(row["id"])
        rows[row["id"]] = row

    for found in lines(data):
        if found is None:
            damaged += 1
            show({"id": f"damage {damaged}", "role": "system", "kind": "damage"})
            continue
        if found["t"] == "late":
            late += found["records"]
            continue
        if found.get("e", 0) < epoch or "seq" not in found:
            late.append(found)
            continue
        if not seq < found["seq"] <= seq + 2**32 or (seq and found["t"] == "head"):
            orphans += 1
            continue
        epoch, seq = found.get("e", 0), found["seq"]
        match found["t"]:
            case "head":
                archived = found["archived"]
            case "inflight" if found["id"] in finished:
                orphans += 1
            case "add":
                finished.add(found["row"]["id"])
                if "before" in found and found["row"]["id"] not in rows:
                    before[found["row"]["id"]] = found["before"]
                show(found["row"])
            case "inflight":
                row_id = found["id"]
                row = rows.get(row_id) or {
                    "id": row_id,
                    "role": "assistant",
                    "at": found.get("at", ""),
                    "blocks": [],
                }
                blocks = list(row["blocks"])
                for index, block in sorted(found["blocks"].items(), key=lambda item: int(item[0])):
                    blocks[int(index) :] = [block, *blocks[int(index) + 1 :]]
                show({**row, "status": "interrupted", "blocks": blocks})
            case "set" if found["id"] in rows:
                rows[found["id"]] = {**rows[found["id"]], found["field"]: found.get("value")}
            case "set":
                orphans += not archived
            case "drop":
                finished.discard(found["id"])
                if rows.pop(found["id"], None):
                    order.remove(found["id"])
            case _:
                orphans += 1
    guests = {row_id: host for row_id, host in before.items() if row_id in rows and host in rows}

    def with_guests(row_id: str) -> list[str]:
        own = [name for guest, host in guests.items() if host == row_id for name in with_guests(guest)]
        return [*own, row_id]

    order = [name for row_id in order if row_id not in guests for name in with_guests(row_id)]
    shown = [rows[row_id] for row_id in order]
    shown += [{"id": "orphans", "role": "system", "kind": "damage"}] if orphans else []
    return shown + (
        [{"id": "late", "role": "system", "kind": "late", "kept": late}] if late else []
    ), archived


def whole(folder: Path, leaf: str) -> list[dict[str, Any]]:
    """*Archiving*: the rows of all segments, then those of the ui log."""
    path = folder / f"{leaf}.ui.jsonl"
    rows, archived = ui(path.read_bytes() if path.exists() else b"")
    earlier: list[dict[str, Any]] = []
    for number in range(1, archived + 1):
        earlier += ui(gzip.decompress((folder / f"{leaf}.arch.{number}.jsonl.gz").read_bytes()))[0]
    return earlier + rows
