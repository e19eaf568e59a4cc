"""What a rollback would find: the state of every published file now, and why it may have to be refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evolution import manifest as manifests
from evolution.errors import Refused
from evolution.manifest import BEFORE, ManifestFile, ManifestUnreadable
from evolution.surface_look import look

State = Literal["clean", "reverted", "modified", "missing", "unverified"]
_CONFLICTS = frozenset({"modified", "missing", "unverified"})

_MESSAGES = {
    "no_snapshot": "There is no usable snapshot of this apply ({detail}), so it can't be rolled back.",
    "backup_mismatch": "The backup no longer holds the bytes that were overwritten ({detail}); not even "
    "a forced rollback uses it. Compare the file under .halo/evo/history/ by hand.",
    "conflict": "Changed since this apply landed: {detail}. Force the rollback to overwrite them.",
    "changed": "What would be overwritten is not what you were shown: {detail}. Look again, then decide.",
}


@dataclass(frozen=True, slots=True)
class FileState:
    """``live``: the hash now; None when there is no file."""

    rel: str
    kind: Literal["overwrite", "new"]
    state: State
    live: str | None

    @property
    def is_conflict(self) -> bool:
        return self.state in _CONFLICTS

    def to_json(self) -> dict[str, Any]:
        return {"rel": self.rel, "kind": self.kind, "state": self.state, "live": self.live}


@dataclass(frozen=True, slots=True)
class RollbackInspection:
    """``refusal`` (``no_snapshot``, ``backup_mismatch``) holds even with force; ``detail`` names the cause."""

    files: tuple[FileState, ...]
    refusal: str | None = None
    detail: str = ""

    @property
    def conflicts(self) -> tuple[FileState, ...]:
        return tuple(file for file in self.files if file.is_conflict)

    def refuse(self, *, force: bool, shown: Sequence[Mapping[str, Any]]) -> None:
        """Raise Refused unless the rollback may go on; ``shown``: the conflicts the person agreed to."""
        if self.refusal is not None:
            raise _refused(self.refusal, self.detail)
        conflicts = [file.to_json() for file in self.conflicts]
        names = ", ".join(f"{file.rel} ({file.state})" for file in self.conflicts)
        if conflicts and not force:
            raise _refused("conflict", names, conflicts=conflicts)
        if any(conflict not in [dict(item) for item in shown] for conflict in conflicts):
            raise _refused("changed", names, conflicts=conflicts)


def inspect(*, halo: Path, snapshot_folder: Path) -> RollbackInspection:
    """Read only; takes no lock, so ``rollback.plan`` asks again under it."""
    try:
        manifest = manifests.read(snapshot_folder)
    except ManifestUnreadable as error:
        return RollbackInspection((), "no_snapshot", str(error))
    backups = {file.rel: look(snapshot_folder / BEFORE, file.rel) for file in manifest.files}
    overwritten = [file for file in manifest.files if file.kind == "overwrite"]
    files = tuple(
        _state(file, live=look(halo, file.rel), backup=backups[file.rel]) for file in manifest.files
    )
    gone = [file.rel for file in overwritten if backups[file.rel] is None]
    if gone:
        return RollbackInspection(files, "no_snapshot", f"the backup of {gone[0]} is missing")
    wrong = [file.rel for file in overwritten if file.before not in (None, backups[file.rel])]
    if wrong:
        return RollbackInspection(files, "backup_mismatch", ", ".join(wrong))
    return RollbackInspection(files)


def _state(file: ManifestFile, *, live: str | None, backup: str | None) -> FileState:
    state: State
    if live == (backup if file.kind == "overwrite" else None):
        state = "reverted"
    elif live is None:
        state = "missing"
    elif file.after is None or (file.kind == "overwrite" and file.before is None):
        state = "unverified"
    else:
        state = "clean" if live == file.after else "modified"
    return FileState(file.rel, file.kind, state, live)


def _refused(code: str, detail: str, **details: Any) -> Refused:
    return Refused(code, _MESSAGES[code].format(detail=detail), **details)
