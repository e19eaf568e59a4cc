"""The installation's own secret key: made once, mode 0600, in ``secrets/``."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def read_or_create(path: Path) -> str:
    """The key in ``path``; the first process to come makes it, all others read the same one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.chmod(0o700)
    if not path.exists():
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(secrets.token_urlsafe(50))
        temporary.chmod(0o600)
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            pass  # another process made it first; its key is the installation's
        finally:
            temporary.unlink()
    return path.read_text().strip()
