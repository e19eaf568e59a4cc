"""The live surface as a reader may see it: the lock, the marker, and what to read while the marker stands.

A publisher sets the marker before its first swap and removes it after its last. Whoever holds the lock's
shared side knows that no publisher is at work; a marker found then was left by one that died half way, and
the paths of its manifest are read from the snapshot's ``before/``: no turn starts on a mixture.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from core import atomic, safe_json
from core.bounded_read import UnreadableFileError, read_bounded
from core.paths import EvolutionPaths, WorkspacePaths, checked_relative, inside_real
from workspaces.lock_file import LockHeld, LockOwner, disown, exclusive, holder, shared

__all__ = [
    "LockHeld",
    "LockOwner",
    "Marker",
    "MarkerUnreadable",
    "SurfaceFiles",
    "clear_marker",
    "disown",
    "exclusive",
    "finality",
    "holder",
    "locked_surface_files",
    "read_marker",
    "set_marker",
    "shared",
    "surface_files",
]

MAX_FILE_BYTES = 16 * 1024 * 1024

Direction = Literal["publish", "restore", "rollback"]
_DIRECTIONS: tuple[Direction, ...] = ("publish", "restore", "rollback")


class MarkerUnreadable(Exception):
    """The marker, or the manifest it names, can't be read: what a reader should see is not known."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A swap under way. ``snapshot`` is relative to ``.halo/evo`` (``history/apply-<id>/<n>``)."""

    apply_id: str
    snapshot: str
    direction: Direction = "publish"


def read_marker(paths: EvolutionPaths) -> Marker | None:
    """Raises MarkerUnreadable for a marker that no publisher wrote."""
    try:
        data = paths.marker_file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        value = safe_json.loads(data)
        snapshot = value["snapshot"]
        if not isinstance(snapshot, str):
            raise TypeError(f"snapshot is {snapshot!r}")
        direction = next(word for word in _DIRECTIONS if word == value["direction"])
        return Marker(str(value["applyId"]), checked_relative(snapshot), direction)
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise MarkerUnreadable(_mend(paths, f"{paths.marker_file} can't be read ({error!r}).")) from error


def set_marker(paths: EvolutionPaths, marker: Marker) -> None:
    """Durable when this returns. The caller holds the exclusive side."""
    value = {"applyId": marker.apply_id, "snapshot": marker.snapshot, "direction": marker.direction}
    atomic.write_json(paths.marker_file, value)


def clear_marker(paths: EvolutionPaths) -> None:
    """Durable when this returns; nothing happens when there is none."""
    paths.marker_file.unlink(missing_ok=True)
    atomic.fsync_folder(paths.root)


@dataclass(frozen=True, slots=True)
class _Overlay:
    """``before``: what to read instead of the live file; ``absent``: files and whole folders to hide."""

    before: dict[str, Path] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    def hides(self, rel: str) -> bool:
        return bool(self.absent) and any(rel == name or rel.startswith(name + "/") for name in self.absent)


class SurfaceFiles:
    """The files of one ``.halo`` folder by relative POSIX path.

    Constructed directly it shows the folder as it is (a sandbox, a base, a global folder); for a live
    surface use ``surface_files``. Symlinks are followed while they stay inside the folder that holds
    ``.halo``; one that leads out raises UnsafePathError, as does a path with ``..``.

    A view is for one reading (a turn's, a freeze's): a folder it has found to be no link isn't asked again.
    Paths are strings here, because a turn asks for fifty.

    ``agents_write``: sandboxed agents may write in ``halo`` itself (``.agents``), so that names can be swapped
    for symlinks while they are read. So they can wherever a symlink led to.
    """

    def __init__(self, halo: Path, overlay: _Overlay | None = None, *, agents_write: bool = False) -> None:
        self.halo = halo
        self._overlay = overlay or _Overlay()
        self._real_parent = os.path.realpath(halo.parent)
        self._folder = f"{self._real_parent}/{halo.name}"
        self._plain_folders: set[str] = set()
        self._agents_write = agents_write

    def read(self, rel: str, *, limit: int = MAX_FILE_BYTES) -> bytes | None:
        """The content, or None when there is no such file. Raises UnreadableFileError (size, kind, rights)."""
        path = self._path(rel)
        if path is None or path in self._plain_folders:
            return None
        try:
            own = path.startswith(f"{self._folder}/") and not self._agents_write
            real_root = None if own else self._real_parent
            return read_bounded(path, limit=limit, real_root=real_root)
        except UnreadableFileError:
            if stat.S_ISDIR(_mode(path)):
                return None
            raise

    def exists(self, rel: str) -> bool:
        path = self._path(rel)
        return path is not None and (path in self._plain_folders or _mode(path) != 0)

    def is_dir(self, rel: str) -> bool:
        path = self._path(rel)
        return path is not None and (path in self._plain_folders or stat.S_ISDIR(_mode(path)))

    def listdir(self, rel: str = ".") -> list[str]:
        """Names in name order; empty when there is no such folder."""
        path = self._path(rel)
        names = _names(path) if path is not None else set()
        prefix = "" if rel == "." else checked_relative(rel) + "/"
        below = {name.removeprefix(prefix) for name in self._overlay.before if name.startswith(prefix)}
        names |= {name for name in below if "/" not in name}
        return sorted(name for name in names if not self._overlay.hides(prefix + name))

    def _path(self, rel: str) -> str | None:
        """Where ``rel`` is to be read; None when it counts as absent."""
        if rel == ".":
            return str(self.halo)
        clean = checked_relative(rel)
        if self._overlay.hides(clean):
            return None
        if clean in self._overlay.before:
            return str(self._overlay.before[clean])
        return self._without_links(clean) or str(inside_real(self._real_parent, f"{self.halo.name}/{clean}"))

    def _without_links(self, clean: str) -> str | None:
        """The path when no symlink lies on the way, which is soon told; None: it has to be followed."""
        path = f"{self._folder}/{clean}"
        parent = path.rpartition("/")[0]
        end = len(parent if parent in self._plain_folders else self._folder)
        try:
            while end != -1:
                if self._is_link(path[:end]):
                    return None
                end = path.find("/", end + 1)
            return None if self._is_link(path) else path
        except FileNotFoundError:
            return path
        except (OSError, ValueError):
            return None

    def _is_link(self, path: str) -> bool:
        if path in self._plain_folders:
            return False
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            self._plain_folders.add(path)
        return stat.S_ISLNK(mode)


def _mode(path: str) -> int:
    """The mode of what is there, symlinks followed; 0 when nothing is. Raises OSError for what can't be told."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - a string, as above
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _names(path: str) -> set[str]:
    try:
        return set(os.listdir(path))  # noqa: PTH208 - the same
    except (FileNotFoundError, NotADirectoryError):
        return set()


class Finality:
    """Whether an apply's row has ended or is gone, which only the floor above knows: it registers the answer."""

    def __init__(self) -> None:
        self._ask: Callable[[str], bool] = lambda _apply_id: False

    def register(self, ask: Callable[[str], bool]) -> None:
        self._ask = ask

    def __call__(self, apply_id: str) -> bool:
        return self._ask(apply_id)


finality = Finality()


def surface_files(halo: Path, *, is_final: Callable[[str], bool] = finality) -> SurfaceFiles:
    """A view of a live surface that never shows half a swap; read it inside ``with shared(...)``.

    The marker of an apply for which ``is_final`` holds is ignored and removed. Raises LockHeld while a
    publisher is at work for longer than the wait, MarkerUnreadable.
    """
    with shared(WorkspacePaths(halo.parent).evolution):
        return locked_surface_files(halo, is_final=is_final)


def locked_surface_files(halo: Path, *, is_final: Callable[[str], bool] = finality) -> SurfaceFiles:
    """The same for a caller who holds a side of the lock already, the exclusive one before its first swap."""
    paths = WorkspacePaths(halo.parent).evolution
    marker = read_marker(paths)
    if marker is None:
        return SurfaceFiles(halo)
    if is_final(marker.apply_id):
        clear_marker(paths)
        return SurfaceFiles(halo)
    return SurfaceFiles(halo, _overlay(paths, marker))


def _overlay(paths: EvolutionPaths, marker: Marker) -> _Overlay:
    snapshot = paths.root / marker.snapshot
    try:
        manifest: dict[str, Any] = safe_json.loads((snapshot / "MANIFEST.json").read_bytes())
        files = [(checked_relative(str(file["rel"])), file["kind"]) for file in manifest["files"]]
        folders = [checked_relative(str(folder)) for folder in manifest["createdDirs"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MarkerUnreadable(
            _mend(paths, f"{snapshot}/MANIFEST.json can't be read ({error!r}).")
        ) from error
    before = {rel: snapshot / "before" / rel for rel, kind in files if kind == "overwrite"}
    return _Overlay(before, frozenset([rel for rel, kind in files if kind == "new"] + folders))


def _mend(paths: EvolutionPaths, what: str) -> str:
    return (
        f"A publication was interrupted and {what} Look at the files under .halo/, set right what is mixed, "
        f"then remove {paths.marker_file}."
    )
