"""SHA-256 of bytes, files and folders; the identity of every text that evolution publishes or takes back."""

from __future__ import annotations

import hashlib
from pathlib import Path


def of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def of_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def of_tree(root: Path) -> dict[str, str]:
    """``{posix path relative to root: sha256}`` of every regular file below ``root``, in name order."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(root).as_posix(): of_file(path) for path in files}
