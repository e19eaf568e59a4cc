"""From the library's exceptions to the table "Errors and retries"."""

from __future__ import annotations

import re

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


def sort_failure(error: Exception, *, has_images: bool) -> CallFailed:
    """The failure of one model call, sorted. ``has_images``: whether images could be to blame."""
    from pydantic_ai import exceptions as library

    words = provider_words(error)
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
