"""Message lists of the Chat Completions API: roles ``user``, ``assistant``, ``tool``, ``system``, ``developer``."""

from __future__ import annotations

import json
from typing import Any

from agents import history as wire
from core.texts import encodable_value, nests_deeper
from sessions_app.importers.blocks import image_bytes, shown
from sessions_app.importers.building import Stamps, build
from sessions_app.importers.imported import Imported, ImportFailed
from sessions_app.importers.message_file import MessageFile, Said, read_messages

ROLES = ("user", "assistant", "tool", "function", "system", "developer")


def recognise(data: bytes) -> bool:
    """Whether ``data`` begins like a list of messages with these roles."""
    try:
        found = read_messages(data)
    except ImportFailed:
        return b'"role"' in data and b'"content"' in data
    return bool(found.messages) and found.messages[0].role in ROLES


def parse(data: bytes) -> Imported:
    """Raises ImportFailed with the line."""
    return converted(read_messages(data))


def converted(file: MessageFile) -> Imported:
    result, given = Imported(), Stamps()
    tools: dict[str, str] = {}
    for message in file.messages:
        match message.role:
            case "user":
                if found := _said(message):
                    result.messages.append({"kind": "request", "parts": given.prompt_parts(found)})
            case "assistant":
                result.messages.append(wire.reply_message(_reply(message, tools)))
            case "tool" | "function":
                _add_result(result, _result(message, tools))
            case "system" | "developer":
                result.left_out["system prompt"] += 1
            case other:
                raise ImportFailed(message.line, f"the role {other[:40]!r} isn't one of {', '.join(ROLES)}")
    build(result, last_line=file.last_line)
    return result


def _add_result(result: Imported, part: dict[str, Any]) -> None:
    """Results of one reply stand in one message."""
    last = result.messages[-1] if result.messages else None
    if last is not None and last["kind"] == "request" and wire.is_tool_result(last["parts"][0]):
        last["parts"].append(part)
    else:
        result.messages.append({"kind": "request", "parts": [part]})


def _reply(message: Said, tools: dict[str, str]) -> list[dict[str, Any]]:
    value = message.value
    thought = value.get("reasoning_content") or value.get("reasoning")
    parts = [{"part_kind": "thinking", "content": thought}] if isinstance(thought, str) and thought else []
    parts += [wire.text_part(item) for item in _said(message) if isinstance(item, str)]
    if isinstance(value.get("refusal"), str) and value["refusal"]:
        parts.append(wire.text_part(value["refusal"]))
    calls = value.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ImportFailed(message.line, "tool_calls is no list of calls")
    if isinstance(value.get("function_call"), dict):  # the older form, whose results go by the name
        name = str(value["function_call"].get("name", ""))
        calls = [*calls, {"id": f"function-{name}-{message.line}", "function": value["function_call"]}]
        tools[f"name:{name}"] = calls[-1]["id"]
    for call in calls:
        function = call.get("function") if isinstance(call.get("function"), dict) else call.get("custom")
        function = function if isinstance(function, dict) else {}
        call_id, tool = str(call.get("id", "")), str(function.get("name", "") or "unknown")
        tools[call_id] = tool
        arguments = function.get("arguments", function.get("input"))
        parts.append(wire.tool_call_part(call_id=call_id, tool=tool, arguments=_arguments(arguments)))
    return parts


def _arguments(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            parsed = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return {"input": value}
        if nests_deeper(parsed):
            return {"input": value}
        value = encodable_value(parsed)
    return value if isinstance(value, dict) else {"input": value}


def _result(message: Said, tools: dict[str, str]) -> dict[str, Any]:
    name = str(message.value.get("name", ""))
    call_id = str(message.value.get("tool_call_id") or tools.get(f"name:{name}", ""))
    found = _said(message)
    part = wire.tool_result_part(
        call_id=call_id,
        tool=tools.get(call_id) or name or "unknown",
        text="\n".join(item for item in found if isinstance(item, str)),
    )
    images = [item for item in found if isinstance(item, dict)]
    return {**part, "content": [part["content"], *images]} if images else part


def _said(message: Said) -> list[Any]:
    """Texts as strings, images as wire-form pieces. Raises ImportFailed for a content of another kind."""
    content = message.value.get("content")
    if content is None:
        return []
    if isinstance(content, str):
        return [content] if content else []
    if isinstance(content, list) and all(isinstance(piece, dict) for piece in content):
        return [item for piece in content if (item := _piece(piece))]
    raise ImportFailed(message.line, "the content is neither a text nor a list of parts")


def _piece(piece: dict[str, Any]) -> Any:
    match piece.get("type"):
        case "text" | "input_text" | "output_text":
            return str(piece.get("text", ""))
        case "refusal":
            return str(piece.get("refusal", ""))
        case "image_url" | "input_image":
            found = piece.get("image_url")
            url = str(found.get("url", "")) if isinstance(found, dict) else str(found or "")
            return _image(url)
        case other:
            return f"[{other}] {shown(piece)}"


def _image(url: str) -> Any:
    """Images that lie elsewhere aren't fetched."""
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma:
        return f"[image: {url}]"
    media_type, _, encoding = head.removeprefix("data:").partition(";")
    return image_bytes(media_type, data) if encoding == "base64" else "[image, not readable]"
