"""From the library's exceptions to the table "Errors and retries"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agents.errors import CallFailed, FailureKind

_UNPAIRED = re.compile(
    r"tool_call_id|tool_calls? .*(must be followed|not followed|response messages)"
    r"|tool_use.*tool_result|tool_result.*tool_use|function call.*function response|unexpected tool",
    re.IGNORECASE | re.DOTALL,
)
_IMAGE = re.compile(r"\bimages?\b|image_url|\bvision\b|multimodal", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context[ _](length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|exceeds? the (model's )?(context|maximum)",
    re.IGNORECASE,
)

WORDS_AT_MOST = 2_000
_KEY_CHARS = 8
"""What is shorter is no key, and may stand in any word."""


def sort_failure(error: Exception, *, has_images: bool, keys: Iterable[str] = ()) -> CallFailed:
    """The failure of one model call, sorted. ``has_images``: whether images could be to blame.

    ``keys`` are taken out of the provider's words: some servers repeat the one they refuse.
    """
    from pydantic_ai import exceptions as library

    words = _shown(provider_words(error), keys)
    retry_after = getattr(error, "retry_after", None)
    status = getattr(error, "status_code", None)
    if isinstance(error, library.ModelContextWindowExceededError):
        return CallFailed("context", words)
    if isinstance(error, library.ModelQuotaExceededError) or status == 402:
        return CallFailed("account", words)
    if isinstance(error, library.ModelAuthenticationError | library.ModelNotFoundError):
        return CallFailed("account", words)
    if isinstance(error, library.ModelConnectionError) and not isinstance(error, library.ModelTimeoutError):
        return CallFailed("connection", words)
    if _is_overload(error, status):
        return CallFailed("overload", words, retry_after=retry_after)
    if isinstance(error, library.ModelAPIError):
        return CallFailed(_kind_of_refusal(words, status, has_images=has_images), words)
    if isinstance(error, ConnectionError | EOFError):
        return CallFailed("connection", words)
    return CallFailed("other", words)


def _is_overload(error: Exception, status: int | None) -> bool:
    from pydantic_ai import exceptions as library

    overloads = (
        library.ModelRateLimitError,
        library.ModelUnavailableError,
        library.ModelServerError,
        library.ModelTimeoutError,
        library.ModelRequestTimeout,
        TimeoutError,
    )
    return isinstance(error, overloads) or (status is not None and (status in (408, 429) or status >= 500))


def _kind_of_refusal(words: str, status: int | None, *, has_images: bool) -> FailureKind:
    if status in (401, 403):
        return "account"
    if _CONTEXT.search(words):
        return "context"
    if _UNPAIRED.search(words):
        return "unpaired"
    if has_images and _IMAGE.search(words):
        return "image"
    return "other" if status is not None else "connection"


def provider_words(error: Exception) -> str:
    """What the provider itself said: the message in the body of its answer, else the exception's text."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            inner = inner.get("message")
        if isinstance(inner, str) and inner:
            return inner
    return str(error) or type(error).__name__


def _shown(words: str, keys: Iterable[str]) -> str:
    """As they go into logs and onto pages: a proxy's answer may be a whole page of HTML."""
    for key in keys:
        words = words.replace(key, "[the key]") if len(key) >= _KEY_CHARS else words
    return words if len(words) <= WORDS_AT_MOST else f"{words[:WORDS_AT_MOST]} [{len(words):,} characters]"
