"""Failures of a turn, sorted by what has to happen next.

AgentError
├── TurnFailed          the turn ends; ``code`` is stable, the text says what to do
│   └── ModelNotUsable  missing, misspelled or keyless model: names the provider and the setting
└── CallFailed          one model call failed; ``kind`` decides about retrying (retries.py)

``tools.context.ToolError`` is told to the model, and the turn goes on.
"""

from __future__ import annotations

from typing import Literal

FailureKind = Literal["overload", "connection", "context", "unpaired", "image", "account", "other"]


class AgentError(Exception):
    """Base of every failure in ``agents``."""


class TurnFailed(AgentError):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class ModelNotUsable(TurnFailed):
    def __init__(self, text: str) -> None:
        super().__init__("model_not_usable", text)


class CallFailed(AgentError):
    """``words`` are the provider's own; ``retry_after`` is in seconds when the provider asked for a pause."""

    def __init__(self, kind: FailureKind, words: str, *, retry_after: float | None = None) -> None:
        super().__init__(words)
        self.kind = kind
        self.words = words
        self.retry_after = retry_after
