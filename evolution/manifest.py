"""``MANIFEST.json`` of a snapshot: what a publication overwrites and adds, by hash. No Django."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core import atomic, safe_json
from core.paths import UnsafePathError, checked_relative

FILE_NAME = "MANIFEST.json"
BEFORE = "before"
STAGE = "stage"
DEFAULT_MODE = 0o644

_PUBLISHED_FILES = frozenset({"INSTRUCTIONS.md", "INDEX.md", "USER.md"})
_PUBLISHED_FOLDERS = frozenset({"agents", "prompts", "skills"})


class ManifestUnreadable(Exception):
    """There is no manifest, it can't be parsed, or it names a path outside the published surface."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """``before`` and ``after`` are SHA-256; None where there is no file, or in a manifest that kept no hashes.

    ``unchanged``: a byte-equal copy of a global file, there only to complete a new override folder.
    """

    rel: str
    kind: Literal["overwrite", "new"]
    before: str | None
    after: str | None
    mode: int = DEFAULT_MODE
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """``created_dirs``: folders the publication makes, deepest first."""

    apply_id: str
    source_run_ids: tuple[str, ...]
    captured_at: str
    files: tuple[ManifestFile, ...]
    created_dirs: tuple[str, ...]


def is_published(rel: str) -> bool:
    """Whether a clean relative path belongs to the surface that may be published."""
    top, _, below = rel.partition("/")
    return rel in _PUBLISHED_FILES or (top in _PUBLISHED_FOLDERS and bool(below))


def write(snapshot_folder: Path, manifest: Manifest) -> None:
    atomic.write_json(
        snapshot_folder / FILE_NAME,
        {
            "applyId": manifest.apply_id,
            "sourceRunIds": list(manifest.source_run_ids),
            "capturedAt": manifest.captured_at,
            "files": [_file_to_json(file) for file in manifest.files],
            "createdDirs": list(manifest.created_dirs),
        },
    )


def read(snapshot_folder: Path) -> Manifest:
    """Raises ManifestUnreadable."""
    path = snapshot_folder / FILE_NAME
    try:
        value = safe_json.loads(path.read_bytes())
        return Manifest(
            apply_id=str(value["applyId"]),
            source_run_ids=tuple(str(run) for run in value["sourceRunIds"]),
            captured_at=str(value["capturedAt"]),
            files=tuple(_file_from_json(file) for file in value["files"]),
            created_dirs=tuple(checked_folder(folder) for folder in value["createdDirs"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ManifestUnreadable(f"{path} can't be read: {error!r}") from error


def _file_to_json(file: ManifestFile) -> dict[str, Any]:
    value: dict[str, Any] = {
        "rel": file.rel,
        "kind": file.kind,
        "before": file.before,
        "after": file.after,
        "mode": f"{file.mode:04o}",
    }
    return value | {"unchanged": True} if file.unchanged else value


def _file_from_json(value: dict[str, Any]) -> ManifestFile:
    if value["kind"] not in ("overwrite", "new"):
        raise ValueError(f"unknown kind {value['kind']!r}")
    rel = checked_relative(str(value["rel"]))
    if not is_published(rel):
        raise UnsafePathError(f"{rel!r} is outside the published surface.")
    return ManifestFile(
        rel=rel,
        kind=value["kind"],
        before=file_hash(value.get("before")),
        after=file_hash(value.get("after")),
        mode=int(value.get("mode", "0644"), 8) & 0o7777,
        unchanged=bool(value.get("unchanged", False)),
    )


def file_hash(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"a hash is text, not {value!r}")
    return value


def checked_folder(value: str) -> str:
    folder = checked_relative(str(value))
    if folder.partition("/")[0] not in _PUBLISHED_FOLDERS:
        raise UnsafePathError(f"{folder!r} is outside the published surface.")
    return folder
