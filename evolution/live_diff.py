"""A draft's files against the live surface as it is now. No Django."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from core.paths import UnsafePathError, checked_relative
from evolution import line_diff
from evolution.artifacts.files import AttemptFiles
from evolution.changes import unit
from evolution.manifest import is_published
from workspaces.overrides import PLATFORM_FOLDER


@dataclass(frozen=True, slots=True)
class FileChange:
    """Texts are None where there is no file. ``live``: where nothing overrides it, what the draft would hide."""

    rel: str
    base: bytes | None
    live: bytes | None
    draft: bytes

    @property
    def is_stale(self) -> bool:
        return self.live not in (self.base, self.draft)

    @property
    def has_landed(self) -> bool:
        return self.live == self.draft

    def diff(self) -> str:
        """Unified, from the live file to the draft; of a landed draft from what it was made on."""
        name = "base" if self.has_landed else "live"
        return unified(self.before, self.draft, rel=self.rel, before_name=name, after_name="draft")

    @property
    def before(self) -> bytes | None:
        """What the draft is shown against."""
        return self.base if self.has_landed else self.live


def changed_files(
    files: AttemptFiles, *, live: Path, global_folder: Path, only: Collection[str] | None = None
) -> list[FileChange]:
    """Every published path whose draft isn't what it was made on, byte-equal copies of global files left out.

    ``only``: no others are looked at.
    """
    if not files.sandbox.is_dir():
        return []
    found = []
    for rel in _rels(files.sandbox) if only is None else sorted(filter(_is_clean, only)):
        path = files.sandbox / rel
        if path.is_symlink() or not path.is_file() or not is_published(rel):
            continue
        draft = path.read_bytes()
        base = _base(files, rel, global_folder)
        if draft != base:
            found.append(
                FileChange(
                    rel=rel,
                    base=base,
                    live=_loaded(rel, live, global_folder),
                    draft=draft,
                )
            )
    return found


def _rels(sandbox: Path) -> list[str]:
    return [path.relative_to(sandbox).as_posix() for path in sorted(sandbox.rglob("*"))]


def _is_clean(rel: str) -> bool:
    try:
        return checked_relative(rel) == rel
    except UnsafePathError:
        return False


def unified(before: bytes | None, after: bytes | None, *, rel: str, before_name: str, after_name: str) -> str:
    """A unified diff of two texts; undecodable bytes are shown as they can be.

    Carriage returns are shown unless every line on both sides ends with one.
    """
    old, new = both_lines(before, after)
    lines = line_diff.unified(
        old,
        new,
        before_name=f"{before_name}/{rel}" if before is not None else "/dev/null",
        after_name=f"{after_name}/{rel}" if after is not None else "/dev/null",
    )
    return "\n".join(lines)


def both_lines(before: bytes | None, after: bytes | None) -> tuple[list[str], list[str]]:
    """The lines of two texts as a diff compares them."""
    keep_returns = not _all_crlf(before, after)
    return _lines(before, keep_returns=keep_returns), _lines(after, keep_returns=keep_returns)


def _base(files: AttemptFiles, rel: str, global_folder: Path) -> bytes | None:
    """What the draft was made on; of a reduced attempt what was kept of it."""
    if not files.reduced.exists():
        return _loaded(rel, files.base, global_folder)
    kept = _read(files.base / rel)
    return _read(files.hidden / rel) if kept is None else kept


def _loaded(rel: str, halo: Path, global_folder: Path) -> bytes | None:
    """``rel`` as sessions load it: a folder that overrides as a whole hides those below it file by file."""
    layers = [halo]
    if rel.startswith("skills/"):
        layers.append(halo.parent / ".agents")
    if rel != "INDEX.md":
        layers += [global_folder, PLATFORM_FOLDER]
    whole = unit(rel)
    layer = next((layer for layer in layers if os.path.lexists(layer / whole)), None)
    return None if layer is None else _read(layer / rel)


def _lines(data: bytes | None, *, keep_returns: bool) -> list[str]:
    """Split at line feeds alone: whatever else Unicode calls a line break is text that a draft can change."""
    if data is None:
        return []
    text = data.decode(errors="replace")
    return (text if keep_returns else text.replace("\r\n", "\n")).removesuffix("\n").split("\n")


def _all_crlf(*contents: bytes | None) -> bool:
    return all(data is None or data.count(b"\n") == data.count(b"\r\n") for data in contents)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
