"""The embedded database is its owner's alone: it holds conversations and password hashes."""

from __future__ import annotations

import os
from pathlib import Path


def make_private(path: Path) -> None:
    """Mode 0600 from the first byte on; SQLite gives its companion files the mode of the database.

    A folder that isn't there, or a file of somebody else, is left for the database itself to complain about.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_mode & 0o077 and os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
