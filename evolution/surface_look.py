"""Looking at a surface, and the two callbacks that everything which touches one is handed. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core import folders
from core.folders import NotAFolder

Step = Callable[[str], None]
"""Told the name of each operation before it happens; an OSError it raises counts as the operation's own."""

Confirm = Callable[[], None]
"""Raises ClaimLost when the row is no longer this wrapper's; asks the database at most every 5 s."""

BLOCKED = "behind-a-link-or-file"
"""What stands for a hash when a folder on the way to a file is a symlink or no folder."""


def look(root: Path, rel: str) -> str | None:
    """The hash of a file reached through no symlink; None: absent; else a word that is no hash."""
    parent, name = folders.split(rel)
    try:
        with folders.opened(root, parent) as folder:
            return folders.hash_of(folder, name)
    except FileNotFoundError:
        return None
    except NotAFolder:
        return BLOCKED


def parents(rel: str) -> list[str]:
    """The folders on the way to ``rel``, nearest to the root first."""
    parts = rel.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def is_file_hash(found: str) -> bool:
    """Whether what ``look`` found is a regular file."""
    return found not in (BLOCKED, folders.NOT_REGULAR)
