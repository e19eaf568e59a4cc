"""Taking a landed publication back: what would happen, the plan, its execution. No row, no Django.

The caller holds the workspace's lock. The plan is written before the first swap; a crash after that is
finished from the plan (``rollback_plan.newest_plan``), a crash before it plans again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from evolution import manifest as manifests
from evolution.errors import Refused
from evolution.manifest import BEFORE, STAGE
from evolution.marking import marked
from evolution.rollback_inspection import inspect
from evolution.rollback_plan import PlannedFile, RollbackPlan, write_plan
from evolution.snapshot import write_copy
from evolution.surface_look import Confirm, Step, look, parents
from evolution.swap import Change, Swapper

__all__ = ["RollbackOutcome", "execute", "inspect", "plan"]


@dataclass(frozen=True, slots=True)
class RollbackOutcome:
    """``left``: files a person changed while we worked, or that can't be reached without following a link.
    ``kept_dirs``: created folders that someone put files into; each still hides the global one.
    ``kept``: texts of a person in the rollback's own ``stage/``, relative to it."""

    restored: tuple[str, ...]
    removed: tuple[str, ...]
    removed_dirs: tuple[str, ...]
    kept_dirs: tuple[str, ...]
    left: tuple[str, ...]
    kept: tuple[str, ...]


def plan(
    *,
    halo: Path,
    snapshot_folder: Path,
    rollback_folder: Path,
    force: bool,
    shown: Sequence[Mapping[str, Any]],
    now: datetime,
    confirm: Confirm,
    step: Step,
) -> RollbackPlan:
    """Check everything again, stage fresh copies of ``before/``, write ``ROLLBACK.json``.

    ``shown`` is the list of conflicts the person saw when forcing (``FileState.to_json``). Raises Refused
    (``no_snapshot``, ``backup_mismatch``, ``conflict``, ``changed``), ClaimLost, OSError; nothing live is
    touched.
    """
    confirm()
    inspection = inspect(halo=halo, snapshot_folder=snapshot_folder)
    inspection.refuse(force=force, shown=shown)
    manifest = manifests.read(snapshot_folder)
    by_rel = {file.rel: file for file in manifest.files}
    step("plan")
    (rollback_folder / STAGE).mkdir(parents=True, exist_ok=True)
    planned = []
    for state in inspection.files:
        confirm()
        backup = snapshot_folder / BEFORE / state.rel
        file = by_rel[state.rel]
        item = PlannedFile.of(state, backup=look(snapshot_folder / BEFORE, state.rel), mode=file.mode)
        step(f"stage:{state.rel}")
        if item.action == "restore":
            write_copy(
                rollback_folder / STAGE, state.rel, backup.read_bytes(), mode=file.mode, like=backup.stat()
            )
            if look(rollback_folder / STAGE, state.rel) != item.new:
                raise Refused("backup_mismatch", f"The backup of {state.rel} changed while it was copied.")
        else:
            (rollback_folder / STAGE / state.rel).parent.mkdir(parents=True, exist_ok=True)
        planned.append(item)
    result = RollbackPlan(manifest.apply_id, force, tuple(planned), manifest.created_dirs)
    step("write-plan")
    write_plan(rollback_folder, result, now=now)
    return result


def execute(
    *,
    halo: Path,
    snapshot_folder: Path,
    rollback_folder: Path,
    plan: RollbackPlan,
    confirm: Confirm,
    step: Step,
) -> RollbackOutcome:
    """Swap the old texts in and take the new files out. Again is the resume. Raises ClaimLost, OSError."""
    items = [item for item in plan.files if item.action in ("restore", "remove")]
    changes = [Change(item.rel, old=item.old, new=item.new) for item in items]
    ways = {folder for item in items if item.action == "restore" for folder in parents(item.rel)}
    swapper = Swapper(halo=halo, stage=rollback_folder / STAGE, step=step, may_create=ways)
    with marked(
        "rollback",
        halo=halo,
        snapshot_folder=snapshot_folder,
        apply_id=plan.apply_id,
        confirm=confirm,
        step=step,
    ):
        for change in changes:
            confirm()
            swapper.settle(change)
        read_back = [swapper.settle(change) for change in changes]
        confirm()
        removed_dirs, kept_dirs = swapper.steps.remove_empty(plan.created_dirs)
        swapper.steps.sync(change.rel for change in changes)
    done = {settled.rel for settled in read_back if settled.outcome == "done"}
    unreachable = [item.rel for item in plan.files if item.action == "leave"]
    return RollbackOutcome(
        restored=tuple(item.rel for item in items if item.action == "restore" and item.rel in done),
        removed=tuple(item.rel for item in items if item.action == "remove" and item.rel in done),
        removed_dirs=tuple(removed_dirs),
        kept_dirs=tuple(kept_dirs),
        left=(*(item.rel for item in items if item.rel not in done), *unreachable),
        kept=tuple(path for settled in read_back for path in settled.kept),
    )
