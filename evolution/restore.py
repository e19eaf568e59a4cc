"""The way back out of a publication that can't be finished: the old surface, plus what people wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.manifest import BEFORE, STAGE, Manifest, ManifestFile
from evolution.marking import marked
from evolution.snapshot import write_copy
from evolution.surface_look import Confirm, Step, look
from evolution.swap import Change, Swapper


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """``edited``: files that a person has changed, left as they are. ``kept``: their texts that lie in the
    snapshot, relative to its ``stage/``. ``kept_dirs``: new folders that someone else has put files into."""

    edited: tuple[str, ...]
    kept: tuple[str, ...]
    kept_dirs: tuple[str, ...]


def restore(
    *, halo: Path, snapshot_folder: Path, manifest: Manifest, confirm: Confirm, step: Step
) -> RestoreOutcome:
    """Undo a publication however far it came; the caller holds the lock. Again is the resume.

    The same swaps with ``before`` and ``after`` exchanged; an edit is no failure here, it stays. Raises
    ClaimLost, OSError; the marker stands then and readers see the old surface.
    """
    swapper = Swapper(halo=halo, stage=snapshot_folder / STAGE, step=step, restoring=True)
    changes = [Change(file.rel, old=file.after, new=file.before) for file in manifest.files]
    with marked(
        "restore",
        halo=halo,
        snapshot_folder=snapshot_folder,
        apply_id=manifest.apply_id,
        confirm=confirm,
        step=step,
    ):
        for file, change in zip(manifest.files, changes, strict=True):
            confirm()
            swapper.steps.tidy(change.rel)
            _replace_lost(file, halo=halo, snapshot_folder=snapshot_folder, step=step)
            swapper.settle(change)
        read_back = [swapper.settle(change) for change in changes]
        confirm()
        _, kept_dirs = swapper.steps.remove_empty(manifest.created_dirs)
        swapper.steps.sync(change.rel for change in changes)
    return RestoreOutcome(
        edited=tuple(settled.rel for settled in read_back if settled.outcome != "done"),
        kept=tuple(path for settled in read_back for path in settled.kept),
        kept_dirs=tuple(kept_dirs),
    )


def _replace_lost(file: ManifestFile, *, halo: Path, snapshot_folder: Path, step: Step) -> None:
    """Stage the old content again from ``before/`` when someone removed it from ``stage/``."""
    stage = snapshot_folder / STAGE
    lost = file.kind == "overwrite" and look(halo, file.rel) == file.after and look(stage, file.rel) is None
    if lost and look(snapshot_folder / BEFORE, file.rel) == file.before:
        backup = snapshot_folder / BEFORE / file.rel
        step(f"stage:{file.rel}")
        write_copy(stage, file.rel, backup.read_bytes(), mode=file.mode, like=backup.stat())
