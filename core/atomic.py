"""Files that are there whole or not at all: temporary name, fsync, rename, fsync of the folder."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any


def write_bytes(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace ``path`` by ``data`` so that a crash leaves the old content or the new, never a part.

    The parent folder must exist. Raises OSError; the temporary file is removed again.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        try:
            write_all(descriptor, data)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def write_text(path: Path, text: str, *, mode: int = 0o644) -> None:
    write_bytes(path, text.encode(), mode=mode)


def write_json(path: Path, value: Any, *, mode: int = 0o644) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n", mode=mode)


def write_all(descriptor: int, data: bytes) -> None:
    """``os.write`` until nothing is left; a full disk raises instead of writing a part in silence."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def fsync_file(path: Path) -> None:
    """Make the content of ``path`` durable, whoever wrote it; its name needs ``fsync_folder``."""
    _fsync(path, os.O_NOFOLLOW)


def fsync_folder(folder: Path) -> None:
    """Make renames and removals in ``folder`` durable."""
    _fsync(folder, os.O_DIRECTORY)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
