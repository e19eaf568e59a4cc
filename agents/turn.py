"""What one turn is handed, in plain values: no row, no settings file, no Django."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agents.retries import RetryPolicy
from agents.tools.context import WebRules
from agents.view import Mount as Mount
from agents.view import View as View

if TYPE_CHECKING:
    from agents.events import AgentEvent, Message

AccessLevel = Literal["full", "workspace", "readonly"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """``agent.yaml``'s ``model`` with the provider's key resolved; ``api_key`` never leaves this process.

    ``credentials``: the provider's own, by the names its SDK gives them, where there is no single key (AWS).
    """

    provider: str
    id: str = ""
    endpoint: str = ""
    api_key: str = field(default="", repr=False)
    max_tokens: int | None = None
    thinking: dict[str, Any] | None = None
    verbosity: str | None = None
    prompt_caching: bool | str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults are those of the settings schema (surface.md)."""

    max_model_calls: int = 200
    shell_timeout_sec: int = 120
    shell_output_bytes: int = 5_242_880
    sandbox_memory_mb: int = 0
    sandbox_processes: int = 2_048
    sandbox_file_mb: int = 4_096
    tool_result_chars: int = 8_000
    tool_result_ui_chars: int = 65_536


@dataclass(frozen=True, slots=True)
class ContextRules:
    """When a history is compacted and how. ``max_tokens`` None: the model's own window, where it is known."""

    max_tokens: int | None = None
    compress_at: float = 0.8
    keep_messages: int = 5
    summarize_timeout_sec: float = 300.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One inbound message (or merged batch) to be worked off.

    ``history`` is extended in place by the loop: at every moment it is what the raw log holds. ``emit`` is
    called on the loop's own thread, in order, and must return quickly. ``wants_interrupt`` is asked after
    each tool call: True ends the turn softly so that waiting messages are folded into the next.
    ``extra_tools`` are plain functions or coroutine functions that bring their own context along.
    ``secret_env`` names variables that settings declare secret; no command of the turn inherits them.
    """

    agent_id: str
    session_id: str
    system_prompt: str
    history: list[Message]
    model: ModelChoice
    tools: Sequence[str]
    access: AccessLevel
    view: View
    emit: Callable[[AgentEvent], None]
    limits: Limits = field(default_factory=Limits)
    context: ContextRules = field(default_factory=ContextRules)
    wants_interrupt: Callable[[], bool] = lambda: False
    extra_tools: Sequence[Callable[..., Any]] = ()
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    secret_env: frozenset[str] = frozenset()
    web: WebRules = field(default_factory=WebRules)


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """``status`` as in ``events.Complete``; ``error`` is empty unless it is ``failed``."""

    status: Literal["completed", "interrupted", "aborted", "failed"]
    text: str
    error: str = ""
