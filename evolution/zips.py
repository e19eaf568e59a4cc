"""A folder of artifacts as one zip, proven by reading it back; and the folder from the zip. No Django.

Every file's modification time goes along to the nanosecond (in its entry's comment): which of ``patch.md`` and
``.skip.md`` counts is told by it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from core import atomic
from core.paths import UnsafePathError, checked_relative

Step = Callable[[str], None]
_CHUNK = 1 << 20
_FIRST_YEAR = (1980, 1, 1, 0, 0, 0)


class ZipDamaged(Exception):
    """The zip doesn't hold what was put into it, or something that nobody packed here."""


def pack(folder: Path, target: Path, *, step: Step = lambda name: None) -> None:
    """Write ``folder`` to ``target``, whole and durable or not at all.

    Empty folders are kept, links to folders not followed, links to files stored as their content, broken links
    and what is neither file nor folder skipped. Raises OSError (a full disk), ZipDamaged.
    """
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        packed = _write(folder, temporary)
        step("zipped")
        atomic.fsync_file(temporary)
        _verify(temporary, packed)
        step("verified")
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    atomic.fsync_folder(target.parent)
    step("zip in place")


def unpack(archive: Path, folder: Path, *, step: Step = lambda name: None) -> None:
    """Put ``folder`` back; one that stands there is the remainder of a removal and makes way.

    Raises OSError (also when its files would not find room), FileNotFoundError without the zip, ZipDamaged,
    with nothing changed.
    """
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
    folder.parent.mkdir(exist_ok=True)
    temporary.mkdir()
    try:
        with _opened(archive) as found:
            _check_room(found, folder.parent)
            for info in found.infolist():
                _extract(found, info, temporary)
        step("unzipped")
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    atomic.fsync_folder(folder.parent)
    step("folder in place")


def check(archive: Path) -> None:
    """Raises ZipDamaged, FileNotFoundError."""
    with _opened(archive) as found:
        _read_all(found)


def read_member(archive: Path, rel: str, *, limit: int) -> bytes | None:
    """The beginning of one file; None when the zip or the file isn't there or can't be read."""
    try:
        with zipfile.ZipFile(archive) as found, found.open(rel) as stream:
            return stream.read(limit)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None


def _write(folder: Path, temporary: Path) -> dict[str, str]:
    """Name and SHA-256 of every entry (a folder's is empty)."""
    packed: dict[str, str] = {}
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with (
        os.fdopen(descriptor, "w+b") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for rel, path in _entries(folder):
            name = _name(rel, packed)
            if name.endswith("/"):
                archive.writestr(_info(name, path.lstat()), b"")
                packed[name] = ""
            elif (digest := _add(archive, name, path)) is not None:
                packed[name] = digest
    return packed


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every folder, with a slash at its end, and everything else below ``folder``, parents first."""
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(folder / prefix) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            rel = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield f"{rel}/", folder / rel
                pending.append(f"{rel}/")
            elif not (entry.is_symlink() and not _leads_to_file(folder / rel)):
                yield rel, folder / rel


def _leads_to_file(link: Path) -> bool:
    try:
        return stat.S_ISREG(link.stat().st_mode)
    except OSError:
        return False  # it leads nowhere, in a circle, or where nobody may look


def _name(rel: str, packed: dict[str, str]) -> str:
    """``rel`` in UTF-8: bytes that are none are written out, as no zip could hold them."""
    name = rel.encode(errors="surrogateescape").decode(errors="backslashreplace")
    if name in packed:
        raise ZipDamaged(f"two files would have the name {name!r}")
    return name


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> str | None:
    """None: there is nothing to store."""
    if not stat.S_ISREG(path.stat().st_mode):
        return None  # a pipe, a socket, a device
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as source:
        status = os.fstat(descriptor)
        digest = hashlib.sha256()
        with archive.open(_info(name, status), "w", force_zip64=status.st_size > 1 << 30) as target:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                target.write(chunk)
    return digest.hexdigest()


def _info(name: str, status: os.stat_result) -> zipfile.ZipInfo:
    moment = time.gmtime(status.st_mtime)[:6]
    info = zipfile.ZipInfo(name, max(_FIRST_YEAR, min(moment, (2107, 12, 31, 23, 59, 58))))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (status.st_mode & 0xFFFF) << 16 | (0x10 if name.endswith("/") else 0)
    info.comment = str(status.st_mtime_ns).encode()
    return info


def _verify(temporary: Path, packed: dict[str, str]) -> None:
    with _opened(temporary) as archive:
        found = _read_all(archive)
    if found != packed:
        raise ZipDamaged("the zip doesn't read back as it was written")


def _read_all(archive: zipfile.ZipFile) -> dict[str, str]:
    found = {}
    for info in archive.infolist():
        digest = hashlib.sha256()
        if not info.is_dir():
            try:
                with archive.open(info) as stream:
                    while chunk := stream.read(_CHUNK):
                        digest.update(chunk)
            except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
                raise ZipDamaged(f"{info.filename}: {error}") from error
        found[info.filename] = "" if info.is_dir() else digest.hexdigest()
    return found


def _opened(archive: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ZipDamaged(str(error)) from error


def _check_room(archive: zipfile.ZipFile, folder: Path) -> None:
    """A small zip may say that it holds more than any disk; more than it says is never read."""
    needed, free = sum(info.file_size for info in archive.infolist()), shutil.disk_usage(folder).free
    if needed > free:
        words = f"its files take {needed >> 20:,} MB and {free >> 20:,} MB are free"
        raise OSError(errno.ENOSPC, words, str(folder))


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    try:
        rel = checked_relative(info.filename.removesuffix("/"))
    except UnsafePathError as error:
        raise ZipDamaged(str(error)) from error
    path = folder / rel
    if info.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = (info.external_attr >> 16) & 0o777 | 0o600
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except FileExistsError as error:
        raise ZipDamaged(f"{info.filename} is in it twice") from error
    with os.fdopen(descriptor, "wb") as target:
        try:
            with archive.open(info) as source:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
        except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
            raise ZipDamaged(f"{info.filename}: {error}") from error
        target.flush()
        os.fsync(descriptor)
    if info.comment.isdigit() and len(info.comment) < 20:
        os.utime(path, ns=(int(info.comment), int(info.comment)))
