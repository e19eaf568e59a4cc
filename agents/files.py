"""Opening what was checked: every path is walked name by name on directory descriptors, inside the view.

A path is checked and opened in one go (``path_walk``); what follows works on the descriptors alone.
Linked machines run this module too, on Python 3.9.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.path_walk import Place as Place
from agents.path_walk import Walker
from agents.path_walk import check_writable as check_writable
from agents.tools.context import ToolError
from agents.view import View

PATH_BYTES = 4_096


def absolute(view: View, text: str) -> Path:
    """``text`` as an absolute path in the view's names, ``~`` and ``..`` not yet resolved."""
    if "\0" in text:
        raise ToolError("A path can't contain a NUL byte.")
    try:
        if len(os.fsencode(text)) > PATH_BYTES:
            raise ToolError(f"The path is longer than {PATH_BYTES:,} bytes.")
    except UnicodeEncodeError:
        raise ToolError(f"{text!a} is no path: it holds half a character (a lone surrogate).") from None
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
    walker = Walker(view, make_folders)
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
    temporary = f".{secrets.token_hex(12)}.tmp"  # without the name, which may fill all that a name can hold
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
