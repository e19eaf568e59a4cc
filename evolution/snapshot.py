"""Preflight of a publication: what it will overwrite, put aside; what it will add, written and durable.

Nothing live is touched here. A snapshot counts only once the checkpoint has named its attempt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from core import atomic, clock, folders, hashes
from core.folders import NotAFolder
from evolution import manifest as manifests
from evolution.changes import Content, unit
from evolution.errors import PhaseFailed
from evolution.manifest import BEFORE, DEFAULT_MODE, STAGE, Manifest, ManifestFile
from evolution.surface_look import Confirm, Step, look, parents


def prepare(
    *,
    halo: Path,
    base_manifest: Path,
    sandbox: Path,
    snapshot_folder: Path,
    apply_id: str,
    source_run_ids: Sequence[str],
    hidden: Mapping[str, Content],
    now: datetime,
    confirm: Confirm,
    step: Step,
) -> Manifest:
    """Snapshot everything in which ``sandbox`` (a ``.halo``) differs from the base, and write the manifest.

    ``base_manifest`` is ``base.json``: ``{rel: sha256}`` of the live surface as copied. ``snapshot_folder``
    is this attempt's own and must not exist. ``hidden`` is what the workspace's files can hide
    (``sandbox.hidden_surface``). Raises PhaseFailed (``drift:<rel>``, ``symlink:<rel>``),
    ClaimLost, OSError; the live surface is untouched then.
    """
    confirm()
    base: Mapping[str, str] = json.loads(base_manifest.read_bytes())
    changed = {rel: data for rel, data in _surface(sandbox) if hashes.of_bytes(data) != base.get(rel)}
    for rel in changed:
        if look(halo, rel) != base.get(rel):
            raise PhaseFailed(f"drift:{rel}")
    step("snapshot")
    snapshot_folder.mkdir(parents=True)
    for name in (BEFORE, STAGE):
        (snapshot_folder / name).mkdir()
    missing = _missing_folders(halo, changed)
    files = []
    for rel, data in changed.items():
        confirm()
        mode = _put_aside(halo, rel, expected=base.get(rel), snapshot_folder=snapshot_folder, step=step)
        if mode is None:
            mode = (sandbox / rel).stat().st_mode & 0o777 | DEFAULT_MODE
        step(f"stage:{rel}")
        write_copy(snapshot_folder / STAGE, rel, data, mode=mode, like=_owner_of(halo, rel))
        files.append(
            ManifestFile(
                rel=rel,
                kind="overwrite" if rel in base else "new",
                before=base.get(rel),
                after=hashes.of_bytes(data),
                mode=mode,
                unchanged=unit(rel) in missing and hidden.get(rel) == data,
            )
        )
    manifest = Manifest(
        apply_id=apply_id,
        source_run_ids=tuple(source_run_ids),
        captured_at=clock.stamp(now),
        files=tuple(files),
        created_dirs=missing,
    )
    step("manifest")
    manifests.write(snapshot_folder, manifest)
    atomic.fsync_folder(snapshot_folder.parent)
    return manifest


def write_copy(root: Path, rel: str, data: bytes, *, mode: int, like: os.stat_result) -> None:
    """``data`` at ``rel`` below ``root``, durable with its folders, with the owner of ``like`` if we may."""
    path = root / rel
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(path, data, mode=mode)
    with suppress(PermissionError):
        os.chown(path, like.st_uid, like.st_gid)
    for folder in parents(rel):
        atomic.fsync_folder(root / folder)
    atomic.fsync_folder(root)


def _surface(sandbox: Path) -> Iterator[tuple[str, bytes]]:
    """Every published file of a ``.halo`` folder by name order. Raises PhaseFailed for a symlink."""
    for folder, names, files in os.walk(sandbox):
        names.sort()
        for name in sorted([*names, *files]):
            path = Path(folder, name)
            rel = path.relative_to(sandbox).as_posix()
            if not manifests.is_published(rel):
                continue
            if path.is_symlink():
                raise PhaseFailed(f"symlink:{rel}")
            if path.is_file():
                yield rel, path.read_bytes()


def _put_aside(
    halo: Path, rel: str, *, expected: str | None, snapshot_folder: Path, step: Step
) -> int | None:
    """Copy the live file to ``before/``; its mode, or None when there is nothing to overwrite.

    The copied bytes are what is compared: ``before`` in the manifest is the hash in ``base.json``.
    """
    if expected is None:
        return None
    parent, name = folders.split(rel)
    try:
        with folders.opened(halo, parent) as folder:
            found = folders.read_regular(folder, name)
    except (FileNotFoundError, NotAFolder):
        found = None
    if found is None or hashes.of_bytes(found[0]) != expected:
        raise PhaseFailed(f"drift:{rel}")
    data, status = found
    step(f"before:{rel}")
    mode = status.st_mode & 0o7777
    write_copy(snapshot_folder / BEFORE, rel, data, mode=mode, like=status)
    return mode


def _owner_of(halo: Path, rel: str) -> os.stat_result:
    """The status of the live file, else of ``.halo`` itself: whose the staged file shall be."""
    parent, name = folders.split(rel)
    with suppress(FileNotFoundError, NotAFolder), folders.opened(halo, parent) as folder:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return halo.stat()


def _missing_folders(halo: Path, rels: Mapping[str, bytes]) -> tuple[str, ...]:
    """Folders that publishing will create, deepest first."""
    wanted = {folder for rel in rels for folder in parents(rel)}
    missing = [folder for folder in wanted if not (halo / folder).is_dir()]
    return tuple(sorted(missing, key=lambda folder: (-folder.count("/"), folder)))
