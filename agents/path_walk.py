"""From a path to open descriptors: every name is opened below the descriptor of its folder, inside the view.

Each name is opened with ``O_NOFOLLOW``; a symlink is read and followed in the view's own names, so it can
lead neither out of the mounts nor from a writable one into a read-only one, however it is swapped meanwhile.
Magic links of ``/proc`` are only text here. Linked machines run this module too, on Python 3.9.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from agents.tools.context import ToolError
from agents.view import View

_LINKS_AT_MOST = 40
_NAMES_AT_MOST = 256  # each name on the way is an open descriptor, of which a process has few
# Linux opens a name without rights to read it; elsewhere a link's own descriptor can't be had.
_JUST_LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC


class Place:
    """Where a path led: ``path`` in the view's names, an open ``folder`` and the thing in it, or None."""

    def __init__(self, path: Path, folder: int | None, descriptor: int | None) -> None:
        self.path = path
        self.folder = folder
        self.descriptor = descriptor

    @property
    def exists(self) -> bool:
        return self.descriptor is not None


def check_writable(view: View, path: Path) -> None:
    if view.may_write(path):
        return
    if view.guard_surface and view.in_surface(path):
        raise ToolError(
            f"{path} belongs to the prompt surface, which no tool may write. To have it changed, "
            "ask the user to type /evo with what should change; a reviewer decides. "
            "Freely writable below .halo/ are assets/, memory/ and tmp/."
        )
    raise ToolError(f"{path} is read-only in this session.")


class Walker:
    def __init__(self, view: View, make_folders: bool) -> None:
        self._view = view
        self._make_folders = make_folders
        self._open: list[int] = []
        self._links = 0

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def walk(self, start: Path, text: str) -> Place:
        """Descriptors are None for folders that exist only as the way to a mount."""
        trail: list[tuple[Path, int | None]] = [(Path("/"), self._at_mount(Path("/")))]
        names = list(reversed(start.parts[1:]))
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            if len(self._open) + len(names) > _NAMES_AT_MOST:
                raise ToolError(f"{text[:200]} runs through more than {_NAMES_AT_MOST} folders.")
            if name == "..":
                if len(trail) > 1:
                    trail.pop()
                continue
            path = trail[-1][0] / name
            self._check_visible(path, text)
            descriptor = self._step(path, trail[-1][1], last=not names)
            target = self._link_target(descriptor)
            if target is not None:
                self._links += 1
                if self._links > _LINKS_AT_MOST:
                    raise ToolError(f"{text} runs through too many symlinks.")
                if target.startswith("/"):
                    trail = trail[:1]
                names += reversed([part for part in target.split("/") if part])
                continue
            if descriptor is None and names and not self._leads_to_a_mount(path):
                raise ToolError(f"{text}: {path} does not exist.")
            trail.append((path, descriptor))
        path, descriptor = trail[-1]
        folder = trail[-2][1] if len(trail) > 1 else None
        if folder is None:
            folder = self._folder_of_mount(path)
        return Place(path, folder, descriptor)

    def _check_visible(self, path: Path, text: str) -> None:
        view = self._view
        if (view.is_hidden(path) or view.mount_of(path) is None) and not self._leads_to_a_mount(path):
            raise ToolError(
                f"{text} is outside what this session may see ({view.root} and the shared prompts)."
            )

    def _leads_to_a_mount(self, path: Path) -> bool:
        return any(path in mount.path.parents for mount in self._view.mounts)

    def _step(self, path: Path, folder: int | None, *, last: bool) -> int | None:
        """Open one name; None when it is absent, or only leads to a mount."""
        mount = self._view.mount_of(path)
        if mount is None or self._view.is_hidden(path):
            return None
        if mount.path == path and mount.source != path:
            return self._at_mount(path)
        if mount.path == path and folder is None:
            return self._at_mount(path)
        if folder is None:
            return None
        try:
            return self._keep(os.open(path.name, _JUST_LOOK, dir_fd=folder))
        except FileNotFoundError:
            if last or not self._make_folders:
                return None
        check_writable(self._view, path / "x")
        with suppress(FileExistsError):
            os.mkdir(path.name, 0o755, dir_fd=folder)
        return self._keep(os.open(path.name, _JUST_LOOK | os.O_DIRECTORY, dir_fd=folder))

    def _at_mount(self, path: Path) -> int | None:
        mount = self._view.mount_of(path)
        if mount is None or mount.path != path:
            return None
        try:
            return self._keep(os.open(mount.source, _JUST_LOOK))
        except FileNotFoundError:
            return None

    def _folder_of_mount(self, path: Path) -> int | None:
        mount = self._view.mount_of(path)
        if mount is None or mount.path != path or mount.source.name != path.name:
            return None
        try:
            return self._keep(os.open(mount.source.parent, _JUST_LOOK | os.O_DIRECTORY))
        except FileNotFoundError:
            return None

    def _link_target(self, descriptor: int | None) -> str | None:
        if descriptor is None or not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            return None
        return os.readlink("", dir_fd=descriptor)

    def _keep(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor
