"""The lines of a Claude Code session file: parsed, and put into the order of the conversation.

A line is an object with ``type``. Lines of the conversation have a ``uuid`` and the ``parentUuid`` they
follow; an edited or rewound message starts another branch, and what counts is the branch that ends last.
After a compaction the chain goes on by ``logicalParentUuid``.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from core.texts import MAX_DEPTH, encodable_value, nests_deeper
from sessions_app.importers.imported import ImportFailed

SPOKEN = ("user", "assistant", "system")


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    value: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.value.get("type", ""))

    @property
    def uuid(self) -> str:
        return str(self.value.get("uuid") or "")

    @property
    def message(self) -> dict[str, Any]:
        found = self.value.get("message")
        return found if isinstance(found, dict) else {}

    @property
    def reply(self) -> str:
        """The id of the model's reply that this line is a part of."""
        return str(self.message.get("id") or "")

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content as a list of blocks, whichever of its forms it has."""
        content = self.message.get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}] if content else []
        return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def read_lines(data: bytes, left_out: Counter[str]) -> list[Line]:
    """Every line's object. A torn last line (the program still writes) is left out; any other is an error."""
    lines: list[Line] = []
    raw = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, text in enumerate(raw, start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            if number == len(raw):
                left_out["unfinished last line"] += 1
                continue
            raise ImportFailed(number, f"not JSON ({error})") from error
        if nests_deeper(value):
            raise ImportFailed(number, f"nested deeper than {MAX_DEPTH} levels")
        if not isinstance(value, dict):
            raise ImportFailed(number, f"a JSON object is expected, this is {type(value).__name__}")
        lines.append(Line(number, encodable_value(value)))
    return lines


def conversation(lines: list[Line], left_out: Counter[str]) -> list[Line]:
    """The lines of the main conversation in order: no sidechains, no abandoned branches, nothing twice."""
    by_uuid: dict[str, Line] = {}
    main: list[Line] = []
    previous: dict[str, str] = {}
    for line in lines:
        if line.uuid:
            if line.uuid in by_uuid:
                left_out["repeated line"] += 1
                continue
            by_uuid[line.uuid] = line
        if line.value.get("isSidechain"):
            left_out["line of a sub-agent (sidechain)"] += 1
        elif line.type in SPOKEN:
            previous[line.uuid] = main[-1].uuid if main else ""
            main.append(line)
    if not main or not all(line.uuid for line in main):
        return main
    kept = _branch(main, by_uuid, previous)
    kept |= _beside(main, kept)
    left_out["line of an abandoned branch"] += len(main) - len(kept)
    return [line for line in main if line.uuid in kept]


def _branch(main: list[Line], by_uuid: dict[str, Line], previous: dict[str, str]) -> set[str]:
    """From the last line back to the first; a parent that isn't in the file is the line before."""
    kept: set[str] = set()
    seen: set[str] = set()
    uuid = main[-1].uuid
    while uuid and uuid not in seen:
        seen.add(uuid)
        line = by_uuid[uuid]
        if uuid in previous:
            kept.add(uuid)
        parent = str(line.value.get("parentUuid") or line.value.get("logicalParentUuid") or "")
        uuid = parent if parent in by_uuid or not parent else previous.get(uuid, "")
    return kept


def _beside(main: list[Line], kept: set[str]) -> set[str]:
    """Parallel calls hang as branches of their own: the rest of a kept reply, and the results of its calls."""
    replies = {line.reply for line in main if line.uuid in kept and line.type == "assistant"}
    more = {line.uuid for line in main if line.type == "assistant" and line.reply and line.reply in replies}
    calls = {
        str(block.get("id"))
        for line in main
        if line.uuid in kept or line.uuid in more
        for block in line.blocks
        if block.get("type") == "tool_use"
    }
    return more | {
        line.uuid
        for line in main
        if line.type == "user"
        and any(
            block.get("type") == "tool_result" and str(block.get("tool_use_id")) in calls
            for block in line.blocks
        )
    }
