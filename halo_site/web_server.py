"""The web process: daphne's server, embedded, so that its start and a taken port can be told to whoever waits."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from core.frames import MAX_FRAME_BYTES
from halo_site.background import Background


def serve(*, host: str, port: int, ready_descriptor: int | None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. ``port`` 0 takes a free one.

    One JSON line goes to ``ready_descriptor``: ``{"port": 8000}`` once it listens, or ``{"error": ...}``.
    """
    from daphne.endpoints import build_endpoint_description_strings
    from daphne.server import Server
    from twisted.internet import reactor  # after daphne, which chooses the one on asyncio

    from halo_site.asgi import application

    failure: list[str] = []

    class FollowedServer(Server):
        def listen_success(self, listening: Any) -> None:
            super().listen_success(listening)
            background.start()
            _tell(ready_descriptor, {"port": listening.getHost().port})

        def listen_error(self, reason: Any) -> None:
            failure.append(reason.getErrorMessage())
            _tell(ready_descriptor, {"error": reason.getErrorMessage()})
            self.stop()

    background = Background()
    reactor.addSystemEventTrigger("before", "shutdown", background.shut_down)  # type: ignore[arg-type]  # its stub is wrong
    try:
        FollowedServer(
            application=application,
            endpoints=build_endpoint_description_strings(host=host, port=port),
            server_name="halo",
            verbosity=0,
            websocket_max_frame_size=MAX_FRAME_BYTES,
            websocket_max_message_size=MAX_FRAME_BYTES,
        ).run()
    finally:
        background.stop()
    for text in failure:
        sys.stderr.write(f"{text}\n")
    return 1 if failure else 0


def _tell(descriptor: int | None, message: dict[str, Any]) -> None:
    if descriptor is None:
        return
    try:
        os.write(descriptor, json.dumps(message).encode() + b"\n")
    except BrokenPipeError:
        sys.stderr.write("Whoever started this web process is gone.\n")
