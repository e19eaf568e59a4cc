"""The single steps of a swap: the only module that writes into a live surface. Called by ``swap`` alone.

Every operation is announced as ``<operation>:<path>`` before it happens; tests kill, edit and fail there and
nowhere else. An OSError raised by that hook counts as the operation's own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from core import folders, renames
from core.folders import NotAFolder
from evolution.surface_look import Step, parents

OUT = ".out"
"""Folder in ``stage/`` for what a file system without exchange has taken out of the surface half way."""

_IN_USE = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ELOOP, errno.EBUSY})


class PersonWasFaster(Exception):
    """A file appeared or vanished under our hands; nothing of it was touched."""


class Steps:
    """Moves files of the same relative path between ``halo`` and ``stage``, both of one file system.

    ``may_create``: folders that may be made on the way to a new file; with any other missing one, a person
    was faster.
    """

    def __init__(self, *, halo: Path, stage: Path, step: Step, may_create: Iterable[str] = ()) -> None:
        self._halo = halo
        self._stage = stage
        self._step = step
        self._may_create = frozenset(may_create)

    def exchange(self, rel: str, operation: str) -> None:
        """Swap live and staged file. Raises PersonWasFaster when the live one is gone."""
        with self._both(rel) as (live, stage, name):
            try:
                self._step(f"{operation}:{rel}")
                renames.exchange(stage, name, live, name)
                return
            except FileNotFoundError as gone:
                raise PersonWasFaster from gone
            except OSError as error:
                if error.errno not in renames.UNSUPPORTED:
                    raise
        self._exchange_in_steps(rel)

    def _exchange_in_steps(self, rel: str) -> None:
        """The same on a file system without exchange: take out, put in without replacing, keep.

        The live name is empty for a moment, but nothing is replaced at any time, so no save is lost that
        falls between. Whether putting in works at all is tried on the stage first. ``tidy`` mends a crash.
        """
        parent, name = folders.split(rel)
        (self._stage / OUT / parent).mkdir(parents=True, exist_ok=True)
        with self._both(rel) as (live, stage, _), folders.opened(self._stage / OUT, parent) as out:
            if _inode(out, name) is not None:
                raise PersonWasFaster
            self._no_replace(stage, out, name, f"try:{rel}")
            os.rename(name, name, src_dir_fd=out, dst_dir_fd=stage)
            self._step(f"take-out:{rel}")
            try:
                os.rename(name, name, src_dir_fd=live, dst_dir_fd=out)
            except FileNotFoundError as gone:
                raise PersonWasFaster from gone
            self._no_replace(stage, live, name, f"put-in:{rel}")
            self._step(f"keep:{rel}")
            os.rename(name, name, src_dir_fd=out, dst_dir_fd=stage)

    def put_in(self, rel: str, operation: str) -> None:
        """Move the staged file to a live name that is free. Raises PersonWasFaster when it isn't."""
        with self._both(rel) as (live, stage, name):
            self._no_replace(stage, live, name, f"{operation}:{rel}")

    def take_out(self, rel: str) -> None:
        """Move the live file into the stage, where its name is free. Raises PersonWasFaster."""
        with self._both(rel) as (live, stage, name):
            if _inode(stage, name) is not None:
                raise PersonWasFaster
            self._step(f"take-out:{rel}")
            try:
                os.rename(name, name, src_dir_fd=live, dst_dir_fd=stage)
            except FileNotFoundError as gone:
                raise PersonWasFaster from gone

    def _no_replace(self, source: int, target: int, name: str, announced: str) -> None:
        """Move between two folders; where the kernel can't without replacing, link and drop the old name.

        ``source`` is never the surface. Raises PersonWasFaster, and OSError where neither is possible.
        """
        try:
            self._step(announced)
            renames.no_replace(source, name, target, name)
        except (FileExistsError, FileNotFoundError) as faster:
            raise PersonWasFaster from faster
        except OSError as error:
            if error.errno not in renames.UNSUPPORTED:
                raise
            try:
                os.link(name, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            except FileExistsError as faster:
                raise PersonWasFaster from faster
            self._step(f"linked-{announced}")
            os.unlink(name, dir_fd=source)

    def tidy(self, rel: str) -> None:
        """Finish or undo what a crash left of an exchange in steps, and drop a second link to a live file."""
        parent, name = folders.split(rel)
        live, staged, out = (self._inode(root, rel) for root in (self._halo, self._stage, self._stage / OUT))
        if staged is not None and staged == live:
            with folders.opened(self._stage, parent) as stage:
                self._step(f"tidy:{rel}")
                os.unlink(name, dir_fd=stage)
            staged = None
        if out is None:
            return
        with folders.opened(self._stage / OUT, parent) as taken, folders.opened(self._stage, parent) as stage:
            self._step(f"tidy:{rel}")
            if out in (live, staged):
                os.unlink(name, dir_fd=taken)
            elif staged is None:
                os.rename(name, name, src_dir_fd=taken, dst_dir_fd=stage)
            elif live is None:
                with (
                    suppress(PersonWasFaster, FileNotFoundError, NotAFolder),
                    folders.opened(self._halo, parent) as surface,
                ):
                    self._no_replace(taken, surface, name, f"put-back:{rel}")

    def make_parents(self, rel: str) -> None:
        """Make the folders on the way to a live file. Raises PersonWasFaster, NotAFolder."""
        for folder_rel in parents(rel):
            parent, name = folders.split(folder_rel)
            with folders.opened(self._halo, parent) as folder:
                if _inode(folder, name) is not None:
                    continue
                if folder_rel not in self._may_create:
                    raise PersonWasFaster
                self._step(f"mkdir:{folder_rel}")
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=folder)

    def remove_empty(self, created: Iterable[str]) -> tuple[list[str], list[str]]:
        """Remove those of the folders, given deepest first, that are empty: (gone now, kept since in use)."""
        removed: list[str] = []
        kept: list[str] = []
        for rel in created:
            parent, name = folders.split(rel)
            try:
                with folders.opened(self._halo, parent) as folder:
                    self._step(f"rmdir:{rel}")
                    os.rmdir(name, dir_fd=folder)
                removed.append(rel)
            except FileNotFoundError:
                removed.append(rel)
            except OSError as error:
                if error.errno not in _IN_USE:
                    raise
                kept.append(rel)
        return removed, kept

    def sync(self, rels: Iterable[str]) -> None:
        """Make every rename of ``rels``, and every folder made or removed on their way, durable."""
        touched = {folder for rel in rels for folder in parents(rel)} | {""}
        for root in (self._halo, self._stage, self._stage / OUT):
            for rel in sorted(touched):
                with suppress(FileNotFoundError, NotAFolder), folders.opened(root, rel) as folder:
                    self._step(f"fsync:{rel or '.'}")
                    os.fsync(folder)

    @contextmanager
    def _both(self, rel: str) -> Iterator[tuple[int, int, str]]:
        """Descriptors of the live and the staged folder of ``rel``, and its name. Raises PersonWasFaster."""
        parent, name = folders.split(rel)
        with ExitStack() as stack:
            try:
                live = stack.enter_context(folders.opened(self._halo, parent))
            except FileNotFoundError as gone:
                raise PersonWasFaster from gone
            yield live, stack.enter_context(folders.opened(self._stage, parent)), name

    def _inode(self, root: Path, rel: str) -> tuple[int, int] | None:
        parent, name = folders.split(rel)
        with suppress(FileNotFoundError, NotAFolder), folders.opened(root, parent) as folder:
            return _inode(folder, name)
        return None


def _inode(folder: int, name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
