"""A draft's files against the live surface as it is now. No Django."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from core.paths import UnsafePathError, checked_relative
from evolution.artifacts.files import AttemptFiles
from evolution.manifest import is_published


@dataclass(frozen=True, slots=True)
class FileChange:
    """Texts are None where there is no file. ``live`` falls back to the global file that the draft would hide."""

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
        base = _first(
            files.base / rel, files.hidden / rel, *_shared(files.base.parent, rel), global_folder / rel
        )
        if draft != base:
            found.append(
                FileChange(
                    rel=rel,
                    base=base,
                    live=_first(live / rel, *_shared(live.parent, rel), global_folder / rel),
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
    lines = difflib.unified_diff(
        old,
        new,
        fromfile=f"{before_name}/{rel}" if before is not None else "/dev/null",
        tofile=f"{after_name}/{rel}" if after is not None else "/dev/null",
        lineterm="",
    )
    return "\n".join(lines)


def both_lines(before: bytes | None, after: bytes | None) -> tuple[list[str], list[str]]:
    """The lines of two texts as a diff compares them."""
    keep_returns = not _all_crlf(before, after)
    return _lines(before, keep_returns=keep_returns), _lines(after, keep_returns=keep_returns)


def _shared(root: Path, rel: str) -> tuple[Path, ...]:
    """A skill beside ``.halo``, which the draft would hide."""
    return (root / ".agents" / rel,) if rel.startswith("skills/") else ()


def _lines(data: bytes | None, *, keep_returns: bool) -> list[str]:
    """Split at line feeds alone: whatever else Unicode calls a line break is text that a draft can change."""
    if data is None:
        return []
    text = data.decode(errors="replace")
    return (text if keep_returns else text.replace("\r\n", "\n")).removesuffix("\n").split("\n")


def _all_crlf(*contents: bytes | None) -> bool:
    return all(data is None or data.count(b"\n") == data.count(b"\r\n") for data in contents)


def _first(*paths: Path) -> bytes | None:
    for path in paths:
        try:
            return path.read_bytes()
        except OSError:
            continue
    return None
