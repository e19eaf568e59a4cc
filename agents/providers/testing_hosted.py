"""Replies of the hosted providers as they look on the wire, for ``testing.ScriptedServer`` on loopback.

wire = WIRES["anthropic"]
with ScriptedServer([wire.failure(529, "busy"), wire.reply("Hello")]) as server:
    ModelChoice(provider="anthropic", id=wire.model, endpoint=wire.endpoint(server), api_key="k")
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agents.providers.testing import ScriptedServer, Step, _Handler

Call = tuple[str, dict[str, Any]]
Events = Callable[[Sequence[str], Call | None, str], Iterator[bytes]]
"""From pieces of text, a tool call and a thought to what is sent, event by event."""


@dataclass(frozen=True, slots=True)
class Wire:
    """``events`` of a whole reply; ``refusal`` is the body of an error answer, from its status and words."""

    provider: str
    model: str
    path: str
    events: Events
    refusal: Callable[[int, str], dict[str, Any]]
    content_type: str = "text/event-stream"

    def endpoint(self, server: ScriptedServer) -> str:
        return server.endpoint.removesuffix("/v1") + self.path

    def reply(self, *pieces: str, call: Call | None = None, thought: str = "") -> Step:
        def step(handler: _Handler) -> None:
            handler.start_stream(self.content_type)
            for event in self.events(pieces, call, thought):
                handler._data(event)
            handler.end_stream()

        return step

    def torn(self, *pieces: str) -> Step:
        """The reply breaks off before its end: the connection is reset."""

        def step(handler: _Handler) -> None:
            handler.start_stream(self.content_type)
            whole = list(self.events(pieces, None, ""))
            for event in whole[: -2 if len(whole) > len(pieces) + 1 else -1]:
                handler._data(event)
            handler.reset()

        return step

    def failure(self, status: int, words: str, *, retry_after: int | None = None, code: str = "") -> Step:
        def step(handler: _Handler) -> None:
            headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
            if self.provider == "bedrock":
                headers["x-amzn-ErrorType"] = code or _BEDROCK_CODES.get(status, "ValidationException")
            handler.answer(status, self.refusal(status, words), headers)

        return step


def _sse(value: dict[str, Any], *, event: str = "") -> bytes:
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + json.dumps(value).encode() + b"\n\n"


def _anthropic(pieces: Sequence[str], call: Call | None, thought: str) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _sse({"type": kind, **fields}, event=kind)

    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "claude-test"}
    yield event("message_start", message={**message, "stop_reason": None, "usage": usage})
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thought:
        deltas = [
            {"type": "thinking_delta", "thinking": thought},
            {"type": "signature_delta", "signature": "s"},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if pieces:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        blocks.append(({"type": "text", "text": ""}, deltas))
    if call:
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(call[1])}]
        blocks.append(({"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = "tool_use" if call else "end_turn"
    yield event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 5})
    yield event("message_stop")


def _openai(pieces: Sequence[str], call: Call | None, thought: str) -> Iterator[bytes]:
    """The Responses API."""
    number = 0

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        return _sse({"type": kind, "sequence_number": number, **fields}, event=kind)

    response: dict[str, Any] = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-test", "output": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress",
    }  # fmt: skip
    yield event("response.created", response=response)
    done: list[dict[str, Any]] = []
    if thought:
        item: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": []}
        yield event("response.output_item.added", output_index=0, item=item)
        place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
        yield event(
            "response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""}
        )
        yield event("response.reasoning_summary_text.delta", **place, delta=thought)
        done.append({**item, "summary": [{"type": "summary_text", "text": thought}]})
        yield event("response.output_item.done", output_index=0, item=done[-1])
    if pieces:
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        place = {"item_id": "msg_1", "output_index": len(done), "content_index": 0}
        yield event("response.output_item.added", output_index=len(done), item=item)
        part = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **place, part=part)
        for piece in pieces:
            yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
        yield event("response.output_text.done", **place, text="".join(pieces), logprobs=[])
        done.append({**item, "status": "completed", "content": [{**part, "text": "".join(pieces)}]})
        yield event("response.output_item.done", output_index=len(done) - 1, item=done[-1])
    if call:
        item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": call[0], "arguments": ""}
        yield event("response.output_item.added", output_index=len(done), item=item)
        place = {"item_id": "fc_1", "output_index": len(done)}
        yield event("response.function_call_arguments.delta", **place, delta=json.dumps(call[1]))
        done.append({**item, "arguments": json.dumps(call[1]), "status": "completed"})
        yield event("response.output_item.done", output_index=len(done) - 1, item=done[-1])
    usage = {
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    yield event(
        "response.completed", response={**response, "status": "completed", "output": done, "usage": usage}
    )


def _google(pieces: Sequence[str], call: Call | None, thought: str) -> Iterator[bytes]:
    def chunk(part: dict[str, Any], **more: Any) -> bytes:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return _sse({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-test"})

    if thought:
        yield chunk({"text": thought, "thought": True})
    for piece in pieces:
        yield chunk({"text": piece})
    if call:
        yield chunk({"functionCall": {"name": call[0], "args": call[1]}})
    yield chunk({"text": ""}, finishReason="STOP")


def _chat(pieces: Sequence[str], call: Call | None, thought: str) -> Iterator[bytes]:
    """Groq's and Mistral's variant of Chat Completions."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
        return _sse({**head, "choices": [choice], **more})

    if thought:
        yield chunk({"reasoning": thought, "content": ""})
    for piece in pieces:
        yield chunk({"content": piece})
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        yield chunk(
            {
                "content": "",
                "tool_calls": [{"index": 0, "id": "callid123", "type": "function", "function": function}],
            }
        )
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield chunk(
        {"content": ""}, finish="tool_calls" if call else "stop", usage=usage, x_groq={"usage": usage}
    )
    yield b"data: [DONE]\n\n"


def _bedrock(pieces: Sequence[str], call: Call | None, thought: str) -> Iterator[bytes]:
    yield _frame("messageStart", {"role": "assistant"})
    index = 0
    if thought:
        delta = {"reasoningContent": {"text": thought}}
        yield _frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
        yield _frame("contentBlockStop", {"contentBlockIndex": index})
        index += 1
    if pieces:
        for piece in pieces:
            yield _frame("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}})
        yield _frame("contentBlockStop", {"contentBlockIndex": index})
        index += 1
    if call:
        start = {"toolUse": {"toolUseId": "tooluse_1", "name": call[0]}}
        yield _frame("contentBlockStart", {"contentBlockIndex": index, "start": start})
        delta = {"toolUse": {"input": json.dumps(call[1])}}
        yield _frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
        yield _frame("contentBlockStop", {"contentBlockIndex": index})
    yield _frame("messageStop", {"stopReason": "tool_use" if call else "end_turn"})
    usage = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    yield _frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})


def _frame(kind: str, payload: dict[str, Any]) -> bytes:
    """One message of AWS's event stream: two lengths, headers and payload, each with its checksum."""
    headers = b""
    pairs = ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event"))
    for name, value in pairs:
        headers += struct.pack("!B", len(name)) + name.encode()
        headers += b"\x07" + struct.pack("!H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


_BEDROCK_CODES = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}


def _error(status: int, words: str) -> dict[str, Any]:
    return {"error": {"message": words, "type": "error", "code": None}}


def _google_error(status: int, words: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": words, "status": "FAILED"}}


WIRES = {
    wire.provider: wire
    for wire in (
        Wire("anthropic", "claude-test", "", _anthropic, lambda _s, words: {
            "type": "error", "error": {"type": "api_error", "message": words}
        }),
        Wire("openai", "gpt-test", "/v1", _openai, _error),
        Wire("google", "gemini-test", "", _google, _google_error),
        Wire("bedrock", "anthropic.claude-test", "", _bedrock, lambda _s, words: {"message": words},
             "application/vnd.amazon.eventstream"),
        Wire("mistral", "mistral-test", "", _chat, lambda _s, words: {"object": "error", "message": words}),
        Wire("groq", "groq-test", "", _chat, _error),
    )
}  # fmt: skip
