"""A reader of session logs written from docs/sessions.md alone: it imports nothing of Halo."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def lines(data: bytes) -> list[dict[str, Any] | None]:
    """*Lines*: whole lines only; None for a damaged one."""
    return [record(line) for line in data.split(b"\n")[:-1]]


def record(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("t"), str) else None


def raw(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """*The raw log*: its messages, and the late records."""
    messages: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    place: dict[int, int] = {}
    epoch, last = 0, -1
    for found in lines(path.read_bytes() if path.exists() else b""):
        if found is None:
            continue
        if found["e"] < epoch:
            late.append(found)
            continue
        epoch = found["e"]
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
    epoch = seq = archived = damaged = 0

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
        if not seq < found["seq"] <= seq + 2**32:
            continue
        epoch, seq = found.get("e", 0), found["seq"]
        match found["t"]:
            case "head":
                archived = found["archived"]
            case "add":
                if "before" in found and found["row"]["id"] not in rows:
                    before[found["row"]["id"]] = found["before"]
                show(found["row"])
            case "inflight":
                row_id = found["id"]
                row = rows.get(row_id) or {"id": row_id, "role": "assistant", "at": found["at"], "blocks": []}
                blocks = list(row["blocks"])
                for index, block in sorted(found["blocks"].items(), key=lambda item: int(item[0])):
                    blocks[int(index) :] = [block, *blocks[int(index) + 1 :]]
                show({**row, "status": "interrupted", "blocks": blocks})
            case "set" if found["id"] in rows:
                rows[found["id"]] = {**rows[found["id"]], found["field"]: found["value"]}
            case "drop" if found["id"] in rows:
                del rows[found["id"]]
                order.remove(found["id"])
    guests = {row_id: host for row_id, host in before.items() if row_id in rows and host in rows}

    def with_guests(row_id: str) -> list[str]:
        own = [name for guest, host in guests.items() if host == row_id for name in with_guests(guest)]
        return [*own, row_id]

    order = [name for row_id in order if row_id not in guests for name in with_guests(row_id)]
    shown = [rows[row_id] for row_id in order]
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
