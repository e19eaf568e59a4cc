"""A folder of artifacts as one zip, proven by reading it back; and the folder from the zip. No Django.

Every file's modification time goes along to the nanosecond (in its entry's comment): which of ``patch.md`` and
``.skip.md`` counts is told by it.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import os
import secrets
import shutil
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from core import atomic
from core.paths import UnsafePathError, checked_relative

Step = Callable[[str], None]
_CHUNK = 1 << 20
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, ValueError, NotImplementedError, RuntimeError),
)
"""All that ``zipfile`` raises for a zip that isn't as somebody wrote it."""
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
        with opened(archive) as found:
            _check_room(found, folder.parent)
            for info in found.infolist():
                extract(found, info, temporary, durable=True)
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
    with opened(archive) as found:
        _read_all(found)


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
    with opened(temporary) as archive:
        found = _read_all(archive)
    if found != packed:
        raise ZipDamaged("the zip doesn't read back as it was written")


def _read_all(archive: zipfile.ZipFile) -> dict[str, str]:
    found = {}
    for info in archive.infolist():
        digest = hashlib.sha256()
        for chunk in () if info.is_dir() else _chunks(archive, info):
            digest.update(chunk)
        found[info.filename] = "" if info.is_dir() else digest.hexdigest()
    return found


def _chunks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    try:
        with archive.open(info) as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
    except DAMAGE as error:
        raise ZipDamaged(f"{info.filename}: {error}") from error


def opened(archive: Path | IO[bytes]) -> zipfile.ZipFile:
    """Raises ZipDamaged, OSError."""
    try:
        return zipfile.ZipFile(archive)
    except DAMAGE as error:
        raise ZipDamaged(str(error)) from error


def _check_room(archive: zipfile.ZipFile, folder: Path) -> None:
    """A small zip may say that it holds more than any disk; more than it says is never read."""
    needed, free = sum(info.file_size for info in archive.infolist()), shutil.disk_usage(folder).free
    if needed > free:
        words = f"its files take {needed >> 20:,} MB and {free >> 20:,} MB are free"
        raise OSError(errno.ENOSPC, words, str(folder))


def path_of(info: zipfile.ZipInfo, folder: Path) -> Path:
    """Where an entry belongs below ``folder``. Raises ZipDamaged for a name that leads out."""
    try:
        return folder / checked_relative(info.filename.removesuffix("/"))
    except UnsafePathError as error:
        raise ZipDamaged(str(error)) from error


def extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, *, durable: bool) -> None:
    """One entry with its mode and time, links as files. Raises ZipDamaged, OSError."""
    path = path_of(info, folder)
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
        for chunk in _chunks(archive, info):
            target.write(chunk)
        target.flush()
        if durable:
            os.fsync(descriptor)
    if info.comment.isdigit() and len(info.comment) < 20:
        os.utime(path, ns=(int(info.comment), int(info.comment)))
