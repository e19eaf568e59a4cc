"""What a tool is handed besides its arguments. Light: linked machines run the same tools, on Python 3.9."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agents.view import View

KILL_GRACE_SEC = 10.0


class ToolError(Exception):
    """What the model is told instead of a result."""


@dataclass(frozen=True)
class ToolLimits:
    result_chars: int = 8_000
    shell_timeout_sec: int = 120
    shell_output_bytes: int = 5_242_880
    sandbox_memory_mb: int = 0
    sandbox_processes: int = 2_048
    sandbox_file_mb: int = 4_096


@dataclass(frozen=True)
class WebRules:
    """What ``web_fetch`` may do. ``refusal``: why it may do nothing at all, for the model; empty: it may."""

    max_bytes: int = 51_200
    allow_private: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class ToolContext:
    """``on_abort`` calls back at the turn's abort and returns what takes the callback off again.

    ``kill_grace_sec`` is asked again and again while a command that was told to end still runs.

    Commands find ``session_id`` in ``HALO_SESSION``: what only a person may do refuses there.
    """

    view: View
    limits: ToolLimits = field(default_factory=ToolLimits)
    is_aborted: Callable[[], bool] = lambda: False
    on_abort: Callable[[Callable[[], None]], Callable[[], None]] = lambda _callback: lambda: None
    kill_grace_sec: Callable[[], float] = lambda: KILL_GRACE_SEC
    secret_env: frozenset[str] = frozenset()
    session_id: str = ""
    web: WebRules = field(default_factory=WebRules)
