"""This floor's tool bundles: registered at the start, and in the processes of evaluations. No Django."""

from __future__ import annotations

from sessions_app import relay_tools, session_tools, tool_bundles


def register_all() -> None:
    tool_bundles.register(session_tools.bundle())
    tool_bundles.register(relay_tools.bundle())
