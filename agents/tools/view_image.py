"""Showing the model an image of the workspace."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass

from agents import files
from agents.tools.context import ToolContext, ToolError

MAX_BYTES = 5 * 1024 * 1024


@dataclass(frozen=True)
class ImageResult:
    """``text`` goes into the log and to the model, the image to the model alone. ``data`` is base64."""

    text: str
    media_type: str
    data: str


def view_image(context: ToolContext, path: str) -> ImageResult:
    """Look at an image file: PNG, JPEG, GIF or WebP, at most 5 MB.

    Args:
        path: The file, absolute or relative to the working directory.
    """
    with files.walk(context.view, path) as place:
        descriptor = files.open_for_reading(place)
    with os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MAX_BYTES:
            raise ToolError(
                f"{path} has {size:,} bytes; images may have {MAX_BYTES:,}. Make it smaller first."
            )
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{path} grew beyond {MAX_BYTES:,} bytes while it was read.")
    media_type = media_type_of(data)
    if not media_type:
        raise ToolError(f"{path} is no PNG, JPEG, GIF or WebP image, whatever its name says.")
    return ImageResult(
        f"{path}: {media_type}, {len(data):,} bytes", media_type, base64.urlsafe_b64encode(data).decode()
    )


def media_type_of(data: bytes) -> str:
    """By the file's first bytes; empty for anything that isn't one of the four."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return ""
