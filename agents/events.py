"""What happens during a turn, as one typed union; log, sockets, command line and telemetry read the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Message = dict[str, Any]
"""One history message in the model library's wire form: ``{"kind": "request"|"response", "parts": [...]}``."""


@dataclass(frozen=True, slots=True)
class AgentStart:
    agent_id: str
    type: Literal["agent_start"] = "agent_start"


@dataclass(frozen=True, slots=True)
class StreamDelta:
    """A piece of the reply's text; ``call`` numbers the model call within the turn, from 1."""

    call: int
    text: str
    type: Literal["stream_delta"] = "stream_delta"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    call: int
    text: str
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class Stream:
    """A finished block of text."""

    call: int
    text: str
    type: Literal["stream"] = "stream"


@dataclass(frozen=True, slots=True)
class Thinking:
    call: int
    text: str
    type: Literal["thinking"] = "thinking"


@dataclass(frozen=True, slots=True)
class ToolCall:
    call: int
    call_id: str
    tool: str
    arguments: dict[str, Any]
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """``text`` is what the model sees, ``shown`` what people do (longer); ``interrupted``: it was cut off."""

    call_id: str
    tool: str
    text: str
    is_error: bool = False
    interrupted: bool = False
    shown: str = ""
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    type: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True)
class CallDiscarded:
    """A call that had streamed failed and is tried again: what it streamed disappears everywhere."""

    call: int
    reason: str
    type: Literal["call_discarded"] = "call_discarded"


@dataclass(frozen=True, slots=True)
class SavePoint:
    """The history has grown: append ``messages`` (whole ones), or ``part`` to message ``of`` (its index)."""

    messages: tuple[Message, ...] = ()
    part: dict[str, Any] | None = None
    of: int | None = None
    type: Literal["save_point"] = "save_point"


@dataclass(frozen=True, slots=True)
class HistoryReplaced:
    """The whole history changed (repair, compaction, images taken out). ``compacted``: parts of it are gone."""

    messages: tuple[Message, ...]
    reason: str
    compacted: bool = False
    type: Literal["history_replaced"] = "history_replaced"


@dataclass(frozen=True, slots=True)
class SystemNote:
    text: str
    type: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class TurnError:
    """The turn ends here; ``text`` says what happened and what to do."""

    code: str
    text: str
    type: Literal["error"] = "error"


@dataclass(frozen=True, slots=True)
class AgentDone:
    agent_id: str
    type: Literal["agent_done"] = "agent_done"


@dataclass(frozen=True, slots=True)
class Complete:
    """The last event of every turn. ``status``: completed, interrupted (soft), aborted, failed."""

    status: Literal["completed", "interrupted", "aborted", "failed"]
    text: str
    model_calls: int
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    type: Literal["complete"] = "complete"


AgentEvent = (
    AgentStart
    | StreamDelta
    | ThinkingDelta
    | Stream
    | Thinking
    | ToolCall
    | ToolResult
    | Usage
    | CallDiscarded
    | SavePoint
    | HistoryReplaced
    | SystemNote
    | TurnError
    | AgentDone
    | Complete
)
