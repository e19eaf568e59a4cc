"""A scripted server that speaks the Chat Completions API over real HTTP on loopback, and fails as told.

    with ScriptedServer([failure(429, "slow down", retry_after=3), text("Hello")]) as server:
        ModelChoice(provider="openai-compatible", id="test-model", endpoint=server.endpoint)

Each request takes the next step of the script; ``server.requests`` holds what was asked.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Step = Callable[["_Handler"], None]

TOO_LONG = "This model's maximum context length is 8192 tokens, however you requested 9000 tokens."
UNPAIRED = (
    "An assistant message with 'tool_calls' must be followed by tool messages "
    "responding to each 'tool_call_id'."
)
IMAGE_REFUSED = "Invalid image data: the image could not be processed."


def text(*pieces: str, finish: str | None = "stop", usage: tuple[int, int] = (10, 5)) -> Step:
    """A streamed reply, one chunk a piece."""

    def step(handler: _Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
        handler.end_reply(finish, usage)

    return step


def thinking(thought: str, answer: str) -> Step:
    def step(handler: _Handler) -> None:
        handler.start_stream()
        handler.chunk({"reasoning_content": thought})
        handler.chunk({"content": answer})
        handler.end_reply("stop", (10, 5))

    return step


def tool_calls(
    *calls: tuple[str, dict[str, Any] | str],
    before: str = "",
    ids: Sequence[str] = (),
    usage: tuple[int, int] = (10, 5),
) -> Step:
    """Parallel calls as (tool, arguments); text arguments are sent as they are, however broken."""

    def step(handler: _Handler) -> None:
        handler.start_stream()
        if before:
            handler.chunk({"content": before})
        for index, (name, arguments) in enumerate(calls):
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call_id = ids[index] if ids else f"call_{handler.scripted.count}_{index}"
            head = {"index": index, "id": call_id, "type": "function"}
            handler.chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
            for start in range(0, len(written), 20):
                piece = {"index": index, "function": {"arguments": written[start : start + 20]}}
                handler.chunk({"tool_calls": [piece]})
        handler.end_reply("tool_calls", usage)

    return step


def failure(status: int, message: str, *, retry_after: float | None = None, code: str | None = None) -> Step:
    def step(handler: _Handler) -> None:
        headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
        handler.answer(status, {"error": {"message": message, "type": "error", "code": code}}, headers)

    return step


def torn(*pieces: str) -> Step:
    """Streams ``pieces``, then the connection is reset."""

    def step(handler: _Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
        handler.reset()

    return step


def ended_early(*pieces: str) -> Step:
    """Streams ``pieces``, then ends properly by HTTP's rules but without a finish reason."""

    def step(handler: _Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
        handler.end_stream()

    return step


def failed_in_stream(message: str, *pieces: str) -> Step:
    def step(handler: _Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
        handler.event({"error": {"message": message, "type": "server_error", "code": None}})
        handler.end_stream()

    return step


def hang(*pieces: str) -> Step:
    """Streams ``pieces`` and then nothing until the server is closed or the client goes away."""

    def step(handler: _Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
        handler.wait_for_the_end()

    return step


class ScriptedServer:
    """``requests`` are the parsed bodies, in order."""

    def __init__(self, script: Sequence[Step]) -> None:
        self._script = list(script)
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.closing = threading.Event()
        handler = type("Handler", (_Handler,), {"scripted": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def count(self) -> int:
        return len(self.requests)

    def next_step(self, body: dict[str, Any]) -> Step:
        with self._lock:
            self.requests.append(body)
            if len(self.requests) > len(self._script):
                return failure(400, "The script has no more steps.")
            return self._script[len(self.requests) - 1]

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def refused_endpoint() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    scripted: ScriptedServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        step = self.scripted.next_step(body)
        try:
            step(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, status: int, value: dict[str, Any], headers: dict[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, header in {**headers, "Content-Type": "application/json"}.items():
            self.send_header(name, header)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def start_stream(self, content_type: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
        self.event({**self._envelope(), "choices": [choice]})

    def end_reply(self, reason: str | None, usage: tuple[int, int]) -> None:
        self.chunk({}, finish=reason)
        spent = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
        self.event({**self._envelope(), "choices": [], "usage": spent})
        self._data(b"data: [DONE]\n\n")
        self.end_stream()

    def event(self, value: dict[str, Any]) -> None:
        self._data(b"data: " + json.dumps(value).encode() + b"\n\n")

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def reset(self) -> None:
        """Close so that the other side sees a reset instead of an end."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def wait_for_the_end(self) -> None:
        self.connection.settimeout(0.05)
        while not self.scripted.closing.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
        self.close_connection = True

    def _envelope(self) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}

    def _data(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: tests read ``requests``."""
