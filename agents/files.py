"""Opening what was checked: every path is walked name by name on directory descriptors, inside the view.

A path is checked and opened in one go. Each name is opened with ``O_NOFOLLOW`` below the descriptor of its
folder; a symlink is read and followed in the view's own names, so it can lead neither out of the mounts nor
from a writable one into a read-only one, however it is swapped meanwhile. Magic links of ``/proc`` are only
text here. Linked machines run this module too, on Python 3.9.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agents.tools.context import ToolError
from agents.view import View

_LINKS_AT_MOST = 40
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


def absolute(view: View, text: str) -> Path:
    """``text`` as an absolute path in the view's names, ``~`` and ``..`` not yet resolved."""
    if "\0" in text:
        raise ToolError("A path can't contain a NUL byte.")
    if not text.strip():
        raise ToolError("The path is empty; give the path of a file or folder.")
    if view.unrestricted and (text == "~" or text.startswith("~/")):
        text = str(Path(text).expanduser())
    return view.folder / text


@contextmanager
def walk(view: View, text: str, *, make_folders: bool = False) -> Iterator[Place]:
    """The place ``text`` leads to, its descriptors open for the time of the ``with``.

    ``make_folders`` creates missing parents where the view lets write. Raises ToolError with the reason when
    the path leaves the view or runs in circles.
    """
    walker = _Walker(view, make_folders)
    try:
        yield walker.walk(absolute(view, text), text)
    except OSError as error:
        raise ToolError(f"{text}: {_reason(error)}.") from error
    finally:
        walker.close()


def open_for_reading(place: Place) -> int:
    """A readable descriptor of the very file that was walked to; regular files only. The caller closes it."""
    if place.descriptor is None or place.folder is None:
        raise ToolError(f"{place.path} does not exist.")
    mode = os.fstat(place.descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise ToolError(f"{place.path} is a folder; list it with file_list.")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{place.path} is not a regular file and can't be read.")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(place.path.name, flags, dir_fd=place.folder)
    walked, opened = os.fstat(place.descriptor), os.fstat(descriptor)
    if (walked.st_dev, walked.st_ino) != (opened.st_dev, opened.st_ino):
        os.close(descriptor)
        raise ToolError(f"{place.path} was replaced while it was being opened; try again.")
    return descriptor


def open_folder(place: Place) -> int:
    """A descriptor of the walked folder that can be listed. The caller closes it."""
    if place.descriptor is None:
        raise ToolError(f"{place.path} does not exist.")
    if not stat.S_ISDIR(os.fstat(place.descriptor).st_mode):
        raise ToolError(f"{place.path} is a file, not a folder.")
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.descriptor)


def replace_file(view: View, place: Place, data: bytes) -> None:
    """Atomically put ``data`` where ``place`` is: temporary file, fsync, rename, all on descriptors."""
    check_writable(view, place.path)
    if place.folder is None:
        raise ToolError(f"{place.path}: the folder does not exist.")
    mode = 0o644
    if place.descriptor is not None:
        found = os.fstat(place.descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{place.path} is not a regular file and can't be written.")
        mode = stat.S_IMODE(found.st_mode)
    temporary = f".{place.path.name[:200]}.{secrets.token_hex(6)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=place.folder)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, place.path.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        os.unlink(temporary, dir_fd=place.folder)
        raise
    _fsync_folder(place.folder)


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


class _Walker:
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


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOTDIR:
        return "a name on the way is a file, not a folder"
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long"
    return (error.strerror or str(error)).lower()


def _fsync_folder(folder: int) -> None:
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
