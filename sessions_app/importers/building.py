"""From messages to a whole conversation: stamps, rows, notes. Shared by every importer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agents import history as wire
from agents.repair import repair
from sessions_app import stamps
from sessions_app.importers.imported import Imported, ImportFailed
from sessions_app.logs import records as make
from sessions_app.logs.agreement import closed_blocks, results_of, rows_of
from sessions_app.logs.records import Message
from sessions_app.titles import title_of

NoteAt = tuple[int, make.Row]
"""A system row, and how many messages stand before it."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = timedelta(milliseconds=1)
_YEARS = range(1970, 9000)
"""A time outside is none: beside it there may be no next moment, or no stamp of the usual width."""


def usable(moment: datetime) -> bool:
    return moment.year in _YEARS


class Stamps:
    """Arrival stamps for messages that a person said, each once."""

    def __init__(self) -> None:
        self._behind: dict[int, int] = {}
        """Milliseconds that are given, each with a later one from where to look for the next that is free."""
        self._newest = -1

    def prompt_parts(self, said: Sequence[Any], moment: datetime | None = None) -> list[dict[str, Any]]:
        """``said``: texts, and images as wire-form pieces, which come before the text.

        One part, stamped with ``moment`` (else just after the newest). A text that brings a stamp of Halo's
        own keeps it and is a part by itself, with the images before it.
        """
        parts: list[dict[str, Any]] = []
        images: list[Any] = []
        texts: list[str] = []
        for item in said:
            if not isinstance(item, str):
                images.append(item)
            elif self._keeps(stamps.of_text(item)):
                parts.append(_prompt(images, item))
                images = []
            else:
                texts.append(item)
        if images or texts:
            parts.append(_prompt(images, self._stamped("\n".join(texts), moment or self.next_moment())))
        return parts

    def _stamped(self, text: str, moment: datetime) -> str:
        number = self._free_from((moment - _EPOCH) // _STEP)
        self._take(number)
        return stamps.stamped(stamps.after(_EPOCH, number), text)

    def next_moment(self) -> datetime:
        """For a message without a usable time: just after the newest stamp so far."""
        return _EPOCH + (self._newest + 1) * _STEP

    def _keeps(self, stamp: str) -> bool:
        """Whether ``stamp`` is a usable one and was still free; it is taken now."""
        if not stamp or not usable(moment := datetime.fromisoformat(stamp)):
            return False
        number = (moment - _EPOCH) // _STEP
        if number in self._behind:
            return False
        self._take(number)
        return True

    def _take(self, number: int) -> None:
        self._behind[number] = number + 1
        self._newest = max(self._newest, number)

    def _free_from(self, number: int) -> int:
        """The first that is free; what was passed leads there at once the next time."""
        passed = []
        while number in self._behind:
            passed.append(number)
            number = self._behind[number]
        self._behind.update(dict.fromkeys(passed, number))
        return number


def _prompt(images: Sequence[Any], text: str) -> dict[str, Any]:
    return {"part_kind": "user-prompt", "content": [*images, text] if images else text}


def build(result: Imported, notes: Sequence[NoteAt] = (), *, last_line: int) -> None:
    """Repair ``result.messages`` and fill in what shows them. Raises ImportFailed when no person spoke."""
    places = _places(result.messages, notes)
    result.messages = repair(result.messages)
    if not any(_prompts(message) for message in result.messages):
        raise ImportFailed(last_line, "the file ends without any message of a person")
    shown: dict[str, list[str]] = {}
    for number, message in enumerate(result.messages):
        results = results_of(result.messages, number)
        result.rows.extend(places.pop(id(message), []))
        ids = _row_ids(message, shown)
        result.rows_of.append(ids)
        for row in rows_of(message, ids, results):
            if row["role"] == "assistant":
                row["blocks"] = closed_blocks(row["blocks"], results)
            elif images := _images_of(_prompts(message)[ids.index(row["id"])]):
                row["images"] = images
            result.rows.append(row)
    for left in places.values():
        result.rows.extend(left)
    texts = (row["text"] for row in result.rows if row["role"] == "user")
    result.title = result.title or next((title for text in texts if (title := title_of(text))), "")


def _row_ids(message: Message, shown: dict[str, list[str]]) -> list[str]:
    """A reply and each user text has its own row; results are shown by the row of their calls."""
    if message["kind"] == "response":
        ids = [make.new_row_id()]
        for call in wire.tool_calls(message):
            shown[call["tool_call_id"]] = ids
        return ids
    prompts = [make.new_row_id() for _ in _prompts(message)]
    if prompts:
        return prompts
    return next(
        (shown[part["tool_call_id"]] for part in message["parts"] if part.get("tool_call_id") in shown),
        [],
    )


def _places(messages: Sequence[Message], notes: Sequence[NoteAt]) -> dict[int, list[make.Row]]:
    """Notes by the identity of the message they stand before; 0 for those at the end."""
    found: dict[int, list[make.Row]] = {}
    for position, row in notes:
        key = id(messages[position]) if position < len(messages) else 0
        found.setdefault(key, []).append(row)
    return found


def _prompts(message: Message) -> list[dict[str, Any]]:
    return [part for part in message["parts"] if part.get("part_kind") == "user-prompt"]


def _images_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    content = part.get("content")
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []
