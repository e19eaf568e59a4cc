"""What one turn is handed, in plain values: no row, no settings file, no Django."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from agents.events import AgentEvent, Message

AccessLevel = Literal["full", "workspace", "readonly"]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """``agent.yaml``'s ``model`` with the provider's key resolved; ``api_key`` never leaves this process."""

    provider: str
    id: str = ""
    endpoint: str = ""
    api_key: str = field(default="", repr=False)
    max_tokens: int | None = None
    thinking: dict[str, Any] | None = None
    verbosity: str | None = None
    prompt_caching: bool | str | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """``source`` shown at ``path`` (absolute, both). The longest matching ``path`` decides."""

    path: Path
    source: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What file tools and sandboxed commands see of the disk. Both read the same mounts.

    ``unrestricted`` (level ``full``): every path of the host; ``mounts`` then only take rights away (the
    prompt surface stays read-only). ``shell``: host (own process group), sandbox (bubblewrap), none.
    """

    root: Path
    mounts: tuple[Mount, ...]
    unrestricted: bool = False
    shell: Literal["host", "sandbox", "none"] = "none"
    working_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults are those of the settings schema (surface.md)."""

    max_model_calls: int = 200
    shell_timeout_sec: int = 120
    shell_output_bytes: int = 5_242_880
    tool_result_chars: int = 8_000
    tool_result_ui_chars: int = 65_536


@dataclass(frozen=True, slots=True)
class Turn:
    """One inbound message (or merged batch) to be worked off.

    ``history`` is extended in place by the loop: at every moment it is what the raw log holds. ``emit`` is
    called on the loop's own thread, in order, and must return quickly. ``wants_interrupt`` is asked after
    each tool call: True ends the turn softly so that waiting messages are folded into the next.
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
    wants_interrupt: Callable[[], bool] = lambda: False
    extra_tools: Sequence[Callable[..., Any]] = ()


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """``status`` as in ``events.Complete``; ``error`` is empty unless it is ``failed``."""

    status: Literal["completed", "interrupted", "aborted", "failed"]
    text: str
    error: str = ""
