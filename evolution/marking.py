"""The marker around a swap: set first, removed last, left standing when anything goes wrong between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from core.paths import WorkspacePaths
from evolution.surface_look import Confirm, Step
from workspaces import publish_lock
from workspaces.publish_lock import Marker


@contextmanager
def marked(
    direction: Literal["publish", "restore", "rollback"],
    *,
    halo: Path,
    snapshot_folder: Path,
    apply_id: str,
    confirm: Confirm,
    step: Step,
) -> Iterator[None]:
    """Readers see the surface as in the snapshot's ``before/`` until the block is through.

    The claim is confirmed before either change of the marker: one set by a replaced wrapper would hide a
    surface that has landed. Raises ClaimLost.
    """
    paths = WorkspacePaths(halo.parent).evolution
    snapshot = snapshot_folder.relative_to(paths.root).as_posix()
    step("mark")
    confirm()
    publish_lock.set_marker(paths, Marker(apply_id, snapshot, direction))
    step("marked")
    yield
    step("unmark")
    confirm()
    publish_lock.clear_marker(paths)
    step("unmarked")
