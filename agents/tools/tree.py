"""Going through folders for ``file_list``, ``glob`` and ``grep``: in name order, through no symlink."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category

from agents.tools.context import ToolContext
from agents.view import View

_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")
SKIPPED = {".git", "node_modules"}
ENTRIES_AT_MOST = 200_000
FOLDERS_DEEP = 100  # each is an open descriptor; a deeper folder is shown, what it holds is not


class Entry:
    """``relative`` to the folder gone through; ``open`` opens the very file that was listed."""

    def __init__(self, path: Path, relative: str, info: os.stat_result, folder: int) -> None:
        self.path = path
        self.relative = relative
        self.info = info
        self._folder = folder

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.info.st_mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.info.st_mode)

    def open(self) -> int:
        """Only while the walk stands at this entry; OSError when it isn't readable."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(self.path.name, flags, dir_fd=self._folder)


def entries(context: ToolContext, folder: int, path: Path, *, deep: bool) -> Iterator[Entry]:
    """Everything below an open ``folder``, which stands at ``path`` in the view; ends early at an abort."""
    levels = FOLDERS_DEEP if deep else 0
    for count, entry in enumerate(_below(context.view, folder, path, "", levels)):
        if count >= ENTRIES_AT_MOST or context.is_aborted():
            return
        yield entry


def _below(view: View, folder: int, path: Path, prefix: str, levels: int) -> Iterator[Entry]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name in SKIPPED or not _is_shown(view, path / name):
            continue
        opened = _mounted_here(view, path / name)
        try:
            entry = Entry(path / name, prefix + name, _info(name, folder, opened), folder)
            yield entry
            if levels and entry.is_folder:
                if opened is None:
                    opened = os.open(
                        name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                    )
                yield from _below(view, opened, path / name, f"{prefix}{name}/", levels - 1)
        except OSError:
            continue
        finally:
            if opened is not None:
                os.close(opened)


def shown_name(relative: str) -> str:
    """A name on a line of its own: one with line breaks or bytes that are no text would pass for others."""
    if relative.isprintable():
        return relative
    return "".join(
        character.encode("unicode_escape").decode() if category(character) in _NO_TEXT else character
        for character in relative
    )


def _info(name: str, folder: int, opened: int | None) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False) if opened is None else os.fstat(opened)


def _is_shown(view: View, path: Path) -> bool:
    return view.mount_of(path) is not None and not view.is_hidden(path)


def _mounted_here(view: View, path: Path) -> int | None:
    """A folder that another one stands in for at this name, opened; None for the common case."""
    mount = view.mount_of(path)
    if mount is None or mount.path != path or mount.source == path:
        return None
    try:
        return os.open(mount.source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
