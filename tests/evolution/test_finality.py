"""A marker that an ended apply left behind hides nothing from readers; one of an apply in flight does."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.ids import new_row_id
from evolution.states import ApplyStatus
from tests.evolution.rows import Rows
from workspaces import publish_lock
from workspaces.publish_lock import Marker

pytestmark = pytest.mark.django_db


def half_published(rows: Rows, apply_id: str) -> Path:
    paths = rows.workspace.paths
    snapshot = paths.evolution.snapshot(apply_id, 1)
    (snapshot / "before").mkdir(parents=True)
    (snapshot / "before/INDEX.md").write_text("old")
    (snapshot / "MANIFEST.json").write_text(
        '{"files": [{"rel": "INDEX.md", "kind": "overwrite"}], "createdDirs": []}'
    )
    (paths.halo / "INDEX.md").write_text("new")
    publish_lock.set_marker(paths.evolution, Marker(apply_id, f"history/apply-{apply_id}/1"))
    return paths.halo


def test_the_marker_of_an_apply_in_flight_stands(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    apply, _claim = rows.syncing()
    assert apply.status == ApplyStatus.SYNCING
    halo = half_published(rows, apply.pk)
    assert publish_lock.surface_files(halo).read("INDEX.md") == b"old"
    assert publish_lock.read_marker(rows.workspace.paths.evolution) is not None


def test_the_marker_of_an_apply_without_a_row_is_ignored_and_removed(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    halo = half_published(rows, new_row_id())
    assert publish_lock.surface_files(halo).read("INDEX.md") == b"new"
    assert publish_lock.read_marker(rows.workspace.paths.evolution) is None


def test_the_marker_of_a_landed_apply_is_ignored_and_removed(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    apply = rows.applied()
    halo = half_published(rows, apply.pk)
    assert publish_lock.surface_files(halo).read("INDEX.md") == b"new"
    assert publish_lock.read_marker(rows.workspace.paths.evolution) is None
