"""``ROLLBACK.json``: what one rollback will do to each file. Once it is written, it is carried out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from core import atomic, clock, safe_json
from core.paths import checked_relative
from evolution.errors import EvolutionError
from evolution.manifest import checked_folder, file_hash, is_published
from evolution.rollback_inspection import FileState
from evolution.surface_look import is_file_hash

FILE_NAME = "ROLLBACK.json"

Action = Literal["restore", "remove", "skip", "leave"]
_ACTIONS: tuple[Action, ...] = ("restore", "remove", "skip", "leave")


class PlanUnreadable(EvolutionError):
    """A plan was written, so files may be half way, and it can't be parsed: no machine may guess."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """``old``: the hash found live at planning, ``new``: the hash wanted; None: no file.

    ``skip``: already as it was. ``leave``: no regular file, or behind a symlink, so out of reach.
    """

    rel: str
    action: Action
    old: str | None
    new: str | None
    mode: int

    @classmethod
    def of(cls, state: FileState, *, backup: str | None, mode: int) -> PlannedFile:
        wanted = backup if state.kind == "overwrite" else None
        action: Action = "restore" if wanted is not None else "remove"
        if state.state == "reverted":
            action = "skip"
        elif state.live is not None and not is_file_hash(state.live):
            action = "leave"
        return cls(state.rel, action, old=state.live, new=wanted, mode=mode)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    apply_id: str
    force: bool
    files: tuple[PlannedFile, ...]
    created_dirs: tuple[str, ...]


def write_plan(rollback_folder: Path, plan: RollbackPlan, *, now: datetime) -> None:
    """Durable when this returns."""
    value: dict[str, Any] = {
        "applyId": plan.apply_id,
        "plannedAt": clock.stamp(now),
        "force": plan.force,
        "files": [asdict(item) for item in plan.files],
        "createdDirs": list(plan.created_dirs),
    }
    atomic.write_json(rollback_folder / FILE_NAME, value)
    atomic.fsync_folder(rollback_folder.parent)


def newest_plan(snapshot_folder: Path) -> tuple[Path, RollbackPlan] | None:
    """The plan of the latest attempt that got as far as writing one, and that attempt's folder.

    Raises PlanUnreadable.
    """
    folders = [path.parent for path in snapshot_folder.glob(f"rollback-*/{FILE_NAME}")]
    if not folders:
        return None
    folder = max(folders, key=lambda path: int(path.name.removeprefix("rollback-")))
    try:
        return folder, _plan(safe_json.loads((folder / FILE_NAME).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlanUnreadable(
            f"{folder / FILE_NAME} can't be read ({error!r}). Put it back from a backup; or set right by hand "
            "what it has left half way, remove it, and try again: the rollback is then planned anew."
        ) from error


def _plan(value: dict[str, Any]) -> RollbackPlan:
    return RollbackPlan(
        apply_id=str(value["applyId"]),
        force=bool(value["force"]),
        files=tuple(_planned(item) for item in value["files"]),
        created_dirs=tuple(checked_folder(folder) for folder in value["createdDirs"]),
    )


def _planned(value: dict[str, Any]) -> PlannedFile:
    rel = checked_relative(str(value["rel"]))
    if not is_published(rel):
        raise ValueError(f"{FILE_NAME} names {rel!r}, which is outside the published surface.")
    action = next((word for word in _ACTIONS if word == value["action"]), None)
    if action is None:
        raise ValueError(f"unknown action {value['action']!r}")
    return PlannedFile(
        rel, action, file_hash(value["old"]), file_hash(value["new"]), int(value["mode"]) & 0o7777
    )
