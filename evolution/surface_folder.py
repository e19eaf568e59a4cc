"""A ``.halo`` folder as evolution sees it: which names count, reading them, copying them. No Django.

Symlinks and other odd entries are never followed or opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from core import hashes
from core.bounded_read import UnreadableFileError
from evolution.changes import Content, NoFile, units
from evolution.errors import PhaseFailed
from workspaces.publish_lock import SurfaceFiles

PUBLISHED = ("INSTRUCTIONS.md", "INDEX.md", "USER.md", "agents", "prompts", "skills")
COPIED = (*PUBLISHED, "docs")
HIDDEN = ("INSTRUCTIONS.md", "USER.md", "agents", "prompts", "skills")
"""What a workspace's files can hide of the global folder (surface.md, "Override rules")."""

OVERRIDES = ("agents", "prompts", "skills")
"""Where a folder counts as a whole, with files in it or without."""

MAX_BYTES = 200 * 1024 * 1024


def walk(root: Path, names: Sequence[str] | None = None) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry below ``root`` that is no folder, in name order; with ``names`` only these top entries."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        for entry in found:
            rel = f"{folder}{entry.name}"
            if not folder and names is not None and entry.name not in names:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(f"{rel}/")
            else:
                yield rel, entry


def read_surface(root: Path, names: Sequence[str] = PUBLISHED) -> dict[str, Content]:
    """The files of a folder nobody swaps meanwhile: a base, a sandbox, the global folder."""
    found: dict[str, Content] = {
        rel: (root / rel).read_bytes() if entry.is_file(follow_symlinks=False) else NoFile.SYMLINK
        for rel, entry in walk(root, names)
    }
    return _with_bare(found, override_folders(root, names))


def override_folders(root: Path, names: Sequence[str] = PUBLISHED) -> list[str]:
    """``agents/<id>`` and so on: what is there as a folder, whatever it holds."""
    found = []
    for top in OVERRIDES:
        if top in names and (root / top).is_dir():
            with os.scandir(root / top) as entries:
                found += [f"{top}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def _with_bare(found: dict[str, Content], folders: Iterable[str]) -> dict[str, Content]:
    filled = units(found)
    return found | {folder: NoFile.FOLDER for folder in folders if folder not in filled}


def own_units(root: Path) -> set[str]:
    """What overrides below ``root``: its files, and its override folders also without any."""
    return units(dict.fromkeys((rel for rel, _ in walk(root)), b"")).union(override_folders(root))


def hash_surface(root: Path) -> dict[str, str]:
    """``{path: sha256}``; an entry that is no regular file has its kind for a hash, which equals no hash."""
    return {
        rel: hashes.of_file(root / rel) if entry.is_file(follow_symlinks=False) else NoFile.SYMLINK.value
        for rel, entry in walk(root)
    }


def live_entries(files: SurfaceFiles, names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """``(path, is a regular file)`` of a live surface, as a loader sees it now (half a swap never shows)."""
    pending = [name for name in reversed(names) if _is_there(files, name)]
    while pending:
        rel = pending.pop()
        kind = _kind(files.halo / rel)
        if kind == "folder" or (kind == "absent" and files.is_dir(rel)):
            pending += [f"{rel}/{name}" for name in reversed(files.listdir(rel))]
        else:
            yield rel, kind != "odd"


def _is_there(files: SurfaceFiles, rel: str) -> bool:
    return _kind(files.halo / rel) == "odd" or files.exists(rel)


def _kind(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "absent"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "odd"


def read_live(files: SurfaceFiles, names: Sequence[str] = PUBLISHED) -> dict[str, Content]:
    found: dict[str, Content] = {}
    for rel, is_regular in live_entries(files, names):
        data = _read(files, rel) if is_regular else None
        found[rel] = NoFile.SYMLINK if data is None else data
    return _with_bare(found, _live_folders(files, names))


def _read(files: SurfaceFiles, rel: str) -> bytes | None:
    """As large as the whole may be; sessions read less. Raises PhaseFailed that names the file."""
    try:
        return files.read(rel, limit=MAX_BYTES)
    except UnreadableFileError as error:
        raise PhaseFailed(f"The prompt surface can't be read: .halo/{rel} {error}.") from error


def _live_folders(files: SurfaceFiles, names: Sequence[str]) -> Iterator[str]:
    for top in OVERRIDES:
        if top in names and _kind(files.halo / top) == "folder":
            rels = (f"{top}/{name}" for name in files.listdir(top))
            yield from (rel for rel in rels if _kind(files.halo / rel) == "folder")


class Copy:
    """Copies files into a folder up to a total of 200 MB. No fsync: a crash makes a new attempt anyway."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.total = 0

    def reserve(self, size: int) -> None:
        """Raises PhaseFailed when ``size`` more bytes are too many; asked before a file is read."""
        if self.total + size > MAX_BYTES:
            raise PhaseFailed(
                f"The prompt surface is larger than {MAX_BYTES >> 20} MB ({(self.total + size) >> 20} MB and "
                "perhaps more). Move large files out of .halo/docs/ and the skills' folders."
            )

    def add(self, rel: str, data: bytes) -> None:
        self.reserve(len(data))
        self.total += len(data)
        path = self.target / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def add_folder(self, rel: str) -> None:
        (self.target / rel).mkdir(parents=True, exist_ok=True)


def copy_live(files: SurfaceFiles, copy: Copy) -> None:
    """Copy the whitelist of a live surface. Raises PhaseFailed, ``symlink:<rel>`` among them."""
    for rel, is_regular in live_entries(files, COPIED):
        try:
            rel.encode()
        except UnicodeEncodeError as error:
            raise PhaseFailed(f"The file name {rel.encode(errors='replace')!r} is not UTF-8.") from error
        path = files.halo / rel
        copy.reserve(path.lstat().st_size if path.is_file() else 0)
        data = _read(files, rel) if is_regular else None
        if data is None:
            raise PhaseFailed(f"symlink:{rel}")
        copy.add(f".halo/{rel}", data)
    for rel in _live_folders(files, COPIED):
        copy.add_folder(f".halo/{rel}")
