"""Which files no draft may touch: the operator's patterns, and ``halo-locked`` in the files themselves. Pure.

A lock covers its whole folder (the skill, the agent), and a lock itself is a lock: a draft can neither set
one nor take one away.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from evolution.category import Unreadable, is_off, read_mapping
from evolution.changes import Content, Surface, unit
from evolution.skill_changes import read_skill

KEY = "halo-locked"


def is_locked(rel: str, *, patterns: Sequence[str], before: Surface, after: Surface) -> bool:
    """``before`` and ``after`` are what sessions load without and with the draft (``changes.hides``)."""
    if any(matches(rel, pattern) for pattern in patterns):
        return True
    definition = _definition(rel)
    if definition is None:
        return False
    return _locks(definition, before.get(definition)) or _locks(definition, after.get(definition))


def matches(rel: str, pattern: str) -> bool:
    """A shell pattern for the path or for a folder above it; ``*`` also crosses folders."""
    wanted = pattern.strip().removeprefix("./").removeprefix(".halo/").rstrip("/")
    path = PurePosixPath(rel)
    return any(
        fnmatchcase(candidate.as_posix(), wanted) for candidate in (path, *path.parents) if candidate.parts
    )


def _definition(rel: str) -> str | None:
    """The file whose metadata can lock ``rel``."""
    folder = unit(rel)
    if folder.startswith("agents/"):
        return f"{folder}/agent.yaml"
    return f"{folder}/SKILL.md" if folder.startswith("skills/") else None


def _locks(definition: str, content: Content | None) -> bool:
    """A file that can't be read but speaks of a lock counts as locked."""
    if not isinstance(content, bytes):
        return False
    try:
        if definition.endswith(".yaml"):
            return not is_off(read_mapping(content).get(KEY))
        head = read_skill(content).head
    except Unreadable:
        return KEY.encode() in content
    return not is_off(head.get(KEY)) or not is_off(head.get("metadata", {}).get(KEY))
