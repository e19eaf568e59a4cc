"""What lies in a workspace's ``.halo/evo``: whose it is by its name, and what is nobody's. No Django."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from core import clock
from core.ids import is_row_id, time_of_row_id
from core.paths import EvolutionPaths
from evolution.folder_lock import FolderBusy, holding

ORPHAN_AFTER = timedelta(hours=1)
HISTORY_ORPHAN_AFTER = timedelta(days=44)
"""Backups of what people wrote lie there: they wait as long as a row that ended would have."""

Place = Literal["folder", "history", "zip"]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A folder or a zip that is named for a row."""

    kind: Literal["run", "apply"]
    row_id: str
    place: Place
    path: Path

    @property
    def name(self) -> str:
        """Relative to ``.halo/evo``."""
        return f"{self.path.parent.name}/{self.path.name}"


def is_usable(paths: EvolutionPaths) -> bool:
    """Whether what is there of the folders are folders: nothing is removed through a link."""
    folders = (paths.root, paths.runs, paths.applies, paths.histories, paths.archive)
    return not any(path.is_symlink() or (path.exists() and not path.is_dir()) for path in folders)


def list_artifacts(paths: EvolutionPaths) -> list[Artifact]:
    """By place and name. Names that no row can have are nobody's business here."""
    return [
        *_named(paths.runs, "run", "folder"),
        *_named(paths.applies, "apply", "folder"),
        *_named(paths.histories, "apply", "history", prefix="apply-"),
        *_named(paths.archive, "run", "zip", prefix="run-", suffix=".zip"),
        *_named(paths.archive, "apply", "zip", prefix="apply-", suffix=".zip"),
    ]


def folder_of(paths: EvolutionPaths, found: Artifact) -> Path:
    return paths.run(found.row_id) if found.kind == "run" else paths.apply(found.row_id)


def is_orphan(found: Artifact, *, known_since: datetime) -> bool:
    """Whether something without a row may be removed: old enough, and made since the database knew the workspace.

    What is older stems from another database (a machine set up anew), where its row may still be.
    """
    made = time_of_row_id(found.row_id)
    if made is None or made < known_since:
        return False
    wait = HISTORY_ORPHAN_AFTER if found.place == "history" else ORPHAN_AFTER
    return _age(found.path) > wait


def list_scraps(paths: EvolutionPaths) -> list[Path]:
    """Halves of zips and of unpacked folders, and locks, when older than an hour."""
    scraps = []
    for folder in (paths.runs, paths.applies, paths.archive):
        for path in _children(folder):
            is_lock = path.suffix == ".lock" and folder == paths.archive
            if path.name.startswith(".") and (is_lock or path.suffix == ".tmp"):
                with suppress(FileNotFoundError):  # another pass was here first
                    if _age(path) > ORPHAN_AFTER:
                        scraps.append(path)
    return scraps


def remove_scrap(path: Path) -> None:
    """A lock goes only when nobody holds it. Raises OSError."""
    with suppress(FileNotFoundError, FolderBusy):
        if path.suffix == ".lock":
            with holding(path):
                pass  # let go, it is gone
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _named(
    folder: Path, kind: Literal["run", "apply"], place: Place, *, prefix: str = "", suffix: str = ""
) -> Iterator[Artifact]:
    for path in _children(folder):
        if not (path.name.startswith(prefix) and path.name.endswith(suffix)):
            continue
        row_id = path.name.removeprefix(prefix).removesuffix(suffix)
        if is_row_id(row_id) and not path.is_symlink():
            yield Artifact(kind, row_id, place, path)


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _age(path: Path) -> timedelta:
    return clock.now() - datetime.fromtimestamp(path.lstat().st_mtime, UTC)
