"""Putting the shipped files (``workspaces/platform``) into ``global/``; a person's own files stay as they are.

``global/.seeded.json`` remembers the version that was seeded and the hash of every file as it was written. A
file that still has that hash is ours to replace; anything else is a person's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import atomic, hashes
from core.folders import exclusive
from core.paths import HaloHome, UnsafePathError, checked_relative
from workspaces.overrides import PLATFORM_FOLDER

PLATFORM_VERSION = 1
"""Raised with every release that changes a shipped file; an older Halo leaves a newer one's files alone."""

_RECORD = ".seeded.json"


@dataclass(frozen=True, slots=True)
class Seeded:
    """What one call did, as paths relative to ``global/``. ``kept``: shipped files that a person changed."""

    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Record:
    version: int
    files: dict[str, str]


def seed(home: HaloHome, *, shipped: Path = PLATFORM_FOLDER, version: int = PLATFORM_VERSION) -> Seeded:
    """Bring ``global/`` up to the shipped files. Safe to repeat and to run in several processes at once.

    Raises OSError when ``global/`` can't be written.
    """
    folder = home.global_folder
    folder.mkdir(parents=True, exist_ok=True)
    done = Seeded()
    with exclusive(folder):
        record = _read_record(folder)
        wanted = {rel: digest for rel, digest in hashes.of_tree(shipped).items() if _is_shipped(rel)}
        if record.version > version or (record.version == version and record.files == wanted):
            return done
        foreign = _persons_folders(folder, wanted, record)
        for rel, digest in wanted.items():
            if _unit(rel) in foreign:
                done.kept.append(rel)
                continue
            _place(folder, shipped, rel, digest, record.files.get(rel), done)
        for rel in record.files.keys() - wanted.keys():
            _withdraw(folder, rel, record.files[rel], done)
        atomic.write_json(folder / _RECORD, {"version": version, "files": wanted})
    return done


def _is_shipped(rel: str) -> bool:
    return not rel.endswith((".py", ".pyc")) and "__pycache__" not in rel


def _unit(rel: str) -> str:
    """The folder that counts as a whole (``agents/<id>``, ``skills/<id>``); else the file itself."""
    parts = Path(rel).parts
    return "/".join(parts[:2]) if parts[0] in ("agents", "skills") and len(parts) > 2 else rel


def _persons_folders(folder: Path, wanted: dict[str, str], record: _Record) -> set[str]:
    """Agents and skills under a shipped name that a person made: a shipped file added to one would change it."""
    seeded = {_unit(rel) for rel in record.files}
    return {
        unit
        for unit in {_unit(rel) for rel in wanted} - seeded
        if (folder / unit).is_dir()
        and any(
            wanted.get(f"{unit}/{rel}") != digest for rel, digest in hashes.of_tree(folder / unit).items()
        )
    }


def _place(folder: Path, shipped: Path, rel: str, digest: str, seeded: str | None, done: Seeded) -> None:
    target = folder / rel
    if _has_symlink(folder, rel):
        done.kept.append(rel)
        return
    if any(parent.exists() and not parent.is_dir() for parent in target.parents):
        done.kept.append(rel)
        return
    if target.exists():
        current = hashes.of_file(target) if target.is_file() else None
        if current == digest:
            return
        if current is None or current != seeded:
            done.kept.append(rel)
            return
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(target, (shipped / rel).read_bytes())
    done.written.append(rel)


def _withdraw(folder: Path, rel: str, seeded: str, done: Seeded) -> None:
    """Take away a file that is shipped no longer, when nobody touched it."""
    target = folder / rel
    if _has_symlink(folder, rel) or not target.is_file():
        return
    if hashes.of_file(target) != seeded:
        done.kept.append(rel)
        return
    target.unlink()
    done.removed.append(rel)
    for parent in target.relative_to(folder).parents:
        if parent == Path() or any((folder / parent).iterdir()):
            break
        (folder / parent).rmdir()


def _has_symlink(folder: Path, rel: str) -> bool:
    parts = Path(rel).parts
    return any((folder / Path(*parts[: length + 1])).is_symlink() for length in range(len(parts)))


def _read_record(folder: Path) -> _Record:
    """An absent or damaged record counts as none: then every file that differs is taken for a person's."""
    try:
        value: dict[str, Any] = json.loads((folder / _RECORD).read_bytes())
        files = {checked_relative(rel): str(digest) for rel, digest in value["files"].items()}
        return _Record(int(value["version"]), files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UnsafePathError):
        return _Record(0, {})
