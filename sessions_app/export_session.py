"""A conversation as a file for people (Markdown) or for programs (JSON). Reading writes nothing."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

from agents import history as wire
from core import clock
from core.texts import counted
from sessions_app.logs import Row, read_session
from sessions_app.logs.agreement import plain_text
from sessions_app.logs.records import Message
from sessions_app.logs.segments import earlier_rows
from sessions_app.logs.shown import DEEPEST, shown
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf

FORMATS = ("md", "json")
_TICKS = re.compile("`+")


def exported(session: Session, *, format: str) -> str:
    """The whole conversation, archived parts included. Raises OSError."""
    ui, raw = read_session(log_folder(session), log_leaf(session))
    rows = [
        shown(row, DEEPEST)
        for row in (*earlier_rows(log_folder(session), log_leaf(session), ui.archived), *ui.rows)
    ]
    if format == "md":
        return "\n".join(_markdown(session, rows)) + "\n"
    value = {
        "session": {
            "id": session.pk,
            "agent": session.agent_id,
            "title": session.title,
            "created_at": clock.stamp(session.created_at),
            "outside_data": session.outside_data_at is not None,
        },
        "messages": [_message(shown(message, DEEPEST)) for message in raw.messages],
        "rows": rows,
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _markdown(session: Session, rows: list[Row]) -> Iterator[str]:
    yield f"# {_one_line(session.title) or session.pk}"
    yield ""
    yield f"Session {session.pk} with {session.agent_id}, begun {clock.stamp(session.created_at)}."
    for row in rows:
        marks = ", ".join(mark for mark in ("deleted", "lost", "restored") if row.get(mark))
        state = row.get("status") if row["role"] == "assistant" and row.get("status") != "done" else ""
        notes = ", ".join(text for text in (str(row.get("at") or ""), marks, str(state or "")) if text)
        yield ""
        yield f"## {row['role']}" + (f" ({notes})" if notes else "")
        for block in row.get("blocks", ()) if row["role"] == "assistant" else ():
            yield from _block(block)
        if row["role"] != "assistant":
            yield ""
            yield str(row.get("text", ""))
            if isinstance(images := row.get("images"), list) and images:
                yield f"\n[{counted(len(images), 'image')}]"


def _block(block: dict[str, Any]) -> Iterator[str]:
    yield ""
    match block.get("type"):
        case "tool_call":
            yield f"Called `{_one_line(str(block.get('tool', '')))}`:"
            yield from _fenced(json.dumps(block.get("arguments"), ensure_ascii=False, indent=1))
            result = block.get("result")
            if isinstance(result, dict):
                ending = " (interrupted)" if result.get("interrupted") else ""
                yield f"\n{'Error' if result.get('is_error') else 'Result'}{ending}:"
                yield from _fenced(str(result.get("text", "")))
        case "thinking":
            yield from (f"> {line}" for line in str(block.get("text", "")).split("\n"))
        case _:
            yield str(block.get("text", ""))


def _fenced(text: str) -> Iterator[str]:
    """A code block whose fence is longer than any in the text, so that nothing gets out of it."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield text
    yield fence


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _message(message: Message) -> dict[str, Any]:
    """In the shape of the Messages API, so that ``halo session import`` and others read it."""
    blocks = [block for part in message["parts"] for block in _blocks(part)]
    return {"role": "assistant" if message["kind"] == "response" else "user", "content": blocks}


def _blocks(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind, content = part.get("part_kind"), part.get("content")
    if wire.is_tool_result(part):
        yield {
            "type": "tool_result",
            "tool_use_id": part.get("tool_call_id", ""),
            "is_error": kind == "retry-prompt" or part.get("outcome", "success") != "success",
            "content": list(_said(content)),
        }
    elif kind == "tool-call":
        arguments = part.get("args")
        yield {
            "type": "tool_use",
            "id": part.get("tool_call_id", ""),
            "name": part.get("tool_name", ""),
            "input": arguments if isinstance(arguments, dict) else {"input": arguments},
        }
    elif kind == "thinking":
        yield {"type": "thinking", "thinking": str(content or "")}
    else:
        yield from _said(content)


def _said(content: Any) -> Iterator[dict[str, Any]]:
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, dict) and piece.get("kind") == "binary":
            yield _image(piece)
        elif text := plain_text([piece]) or (plain_text(piece) if not isinstance(piece, dict) else ""):
            yield {"type": "text", "text": text}


def _image(piece: dict[str, Any]) -> dict[str, Any]:
    """A line of text stands for one whose bytes can't be read: somebody wrote into the log."""
    try:
        data = base64.b64decode(str(piece.get("data", "")), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return {"type": "text", "text": "[image, not readable]"}
    media_type = str(piece.get("media_type", ""))
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}
