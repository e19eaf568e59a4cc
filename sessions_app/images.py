"""Pictures that come with a message, from outside: what is taken, and in which form it is kept."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from sessions_app.errors import SessionRefused

MAX_IMAGES = 8
MAX_BYTES = 5 * 1024 * 1024
_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


def checked_images(images: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """(media type, base64) as a message keeps them. Raises SessionRefused ``bad_image``; nothing is kept then."""
    found = list(images)
    if len(found) > MAX_IMAGES:
        raise SessionRefused(f"{len(found)} pictures; a message holds {MAX_IMAGES} at most.", "bad_image")
    return [kept_image(media_type, _decoded(data)) for media_type, data in found]


def kept_image(media_type: str, content: bytes) -> dict[str, Any]:
    """Raises SessionRefused ``bad_image``."""
    beginnings = _BEGINNINGS.get(media_type)
    if beginnings is None:
        raise SessionRefused(f"Pictures are {', '.join(_BEGINNINGS)}; this is something else.", "bad_image")
    if len(content) > MAX_BYTES:
        raise SessionRefused(f"The picture has {len(content)} bytes; {MAX_BYTES} are the most.", "bad_image")
    if not content.startswith(beginnings):
        raise SessionRefused(f"What was sent as {media_type} isn't one.", "bad_image")
    return {"media_type": media_type, "data": base64.urlsafe_b64encode(content).decode()}


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SessionRefused("The picture isn't in base64.", "bad_image") from error


def data_address(image: object) -> str:
    """What a page shows of a kept picture, as ``data:`` address; empty when it isn't one that we would keep."""
    if not isinstance(image, dict) or str(image.get("media_type")) not in _BEGINNINGS:
        return ""
    try:
        content = base64.b64decode(str(image.get("data", "")), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return ""
    return f"data:{image['media_type']};base64,{base64.b64encode(content).decode()}"
