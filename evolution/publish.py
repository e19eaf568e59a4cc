"""Publication: a prepared snapshot goes live, file by file, under the marker. No row, no Django.

The caller holds the workspace's lock, has confirmed its claim afresh since it got it, and has moved the row
to ``syncing``. Calling it again is the resume.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evolution.errors import EvolutionError
from evolution.manifest import STAGE, Manifest
from evolution.marking import marked
from evolution.surface_look import Confirm, Step
from evolution.swap import Change, Settled, Swapper


class Drifted(EvolutionError):
    """A person's edit came between: the old surface must be restored. The marker still stands.

    ``kept``: their texts that lie in the snapshot, relative to its ``stage/``.
    """

    def __init__(self, rels: tuple[str, ...], kept: tuple[str, ...]) -> None:
        super().__init__(f"Changed by someone while it was being published: {', '.join(rels)}")
        self.rels = rels
        self.kept = kept

    @property
    def reason(self) -> str:
        return f"drift:{self.rels[0]}"


@dataclass(frozen=True, slots=True)
class PublishOutcome:
    """``edited_since``: published, but a person has changed or removed it before we were through."""

    published: tuple[str, ...]
    edited_since: tuple[str, ...]
    kept: tuple[str, ...]


def publish(
    *, halo: Path, snapshot_folder: Path, manifest: Manifest, confirm: Confirm, step: Step
) -> PublishOutcome:
    """Raises Drifted, ClaimLost, OSError; after each the marker stands and readers see the old surface."""
    swapper = Swapper(halo=halo, stage=snapshot_folder / STAGE, step=step, may_create=manifest.created_dirs)
    changes = [Change(file.rel, old=file.before, new=file.after) for file in manifest.files]
    with marked(
        "publish",
        halo=halo,
        snapshot_folder=snapshot_folder,
        apply_id=manifest.apply_id,
        confirm=confirm,
        step=step,
    ):
        _settle_all(swapper, changes, confirm)
        read_back = _settle_all(swapper, changes, confirm)
        swapper.steps.sync(change.rel for change in changes)
    return PublishOutcome(
        published=tuple(settled.rel for settled in read_back if settled.outcome == "done"),
        edited_since=tuple(settled.rel for settled in read_back if settled.outcome == "edited"),
        kept=tuple(path for settled in read_back for path in settled.kept),
    )


def _settle_all(swapper: Swapper, changes: list[Change], confirm: Confirm) -> list[Settled]:
    result = []
    for change in changes:
        confirm()
        settled = swapper.settle(change)
        if settled.outcome == "drift":
            raise Drifted((settled.rel,), settled.kept)
        result.append(settled)
    return result
