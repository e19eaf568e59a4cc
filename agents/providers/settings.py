"""``agent.yaml``'s model options as the library's settings; an option a provider lacks is dropped by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

    from agents.turn import ModelChoice


SILENCE_SEC = 300.0
"""A provider that sends nothing for so long has timed out."""


def model_settings(choice: ModelChoice) -> ModelSettings:
    """The library's own retries are off: the loop must see each failure, to discard what had streamed."""
    from pydantic_ai.settings import ModelSettings

    options: dict[str, Any] = {"max_retries": 0, "timeout": SILENCE_SEC}
    if choice.max_tokens is not None:
        options["max_tokens"] = choice.max_tokens
    if choice.thinking is not None:
        enabled = choice.thinking.get("enabled", True)
        options["thinking"] = choice.thinking.get("effort", True) if enabled else False
    if choice.prompt_caching:
        options["cache"] = choice.prompt_caching
    if choice.verbosity is not None and choice.provider in ("openai", "openai-compatible"):
        options["openai_text_verbosity"] = choice.verbosity
    return ModelSettings(**options)  # type: ignore[typeddict-item]
