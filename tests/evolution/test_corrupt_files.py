"""Files of a swap that somebody has written over: named in the error, and in nobody else's way."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.paths import WorkspacePaths
from evolution import manifest
from evolution.manifest import ManifestUnreadable
from evolution.rollback_plan import PlanUnreadable, newest_plan
from evolution.standstill import account_of
from workspaces import publish_lock
from workspaces.publish_lock import MarkerUnreadable

DEEP = b"[" * 100_000
MARKER = {"applyId": "a", "snapshot": "history/apply-a/1", "direction": "publish"}
MANIFEST: dict[str, Any] = {
    "applyId": "a",
    "sourceRunIds": [],
    "capturedAt": "",
    "files": [{"rel": "INDEX.md", "kind": "overwrite", "before": "aa", "after": "bb", "mode": "0644"}],
    "createdDirs": [],
}
PLAN: dict[str, Any] = {
    "applyId": "a",
    "force": False,
    "files": [{"rel": "INDEX.md", "action": "restore", "old": "bb", "new": "aa", "mode": 0o644}],
    "createdDirs": [],
}
Change = Callable[[dict[str, Any]], object]


def corrupted(value: dict[str, Any], change: Change) -> bytes:
    copy = json.loads(json.dumps(value))
    change(copy)
    return json.dumps(copy).encode()


def all_damages(value: dict[str, Any], *changes: Change) -> list[bytes]:
    return [b"", b"\0\0", b"5", b"[]", DEEP, *(corrupted(value, change) for change in changes)]


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = WorkspacePaths(tmp_path).evolution.snapshot("a", 1)
    (folder / "rollback-2").mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "data",
    all_damages(
        MANIFEST,
        lambda value: value["files"][0].update(rel=["INDEX.md"]),
        lambda value: value["files"][0].update(rel="../../etc/passwd"),
        lambda value: value.update(createdDirs=[["agents/x"]]),
    ),
)
def test_a_manifest(tmp_path: Path, snapshot: Path, data: bytes) -> None:
    (snapshot / "MANIFEST.json").write_bytes(data)
    with pytest.raises(ManifestUnreadable, match=r"MANIFEST\.json"):
        manifest.read(snapshot)
    paths = WorkspacePaths(tmp_path)
    publish_lock.set_marker(paths.evolution, publish_lock.Marker("a", "history/apply-a/1"))
    with suppress(MarkerUnreadable):  # a reader needs less of it than a publisher, and may be content
        publish_lock.surface_files(paths.halo, is_final=lambda _apply_id: False)


@pytest.mark.parametrize("data", [b"", DEEP, b"[]"])
def test_the_account_of_an_apply_says_that_it_can_not_be_known(
    tmp_path: Path, snapshot: Path, data: bytes
) -> None:
    """It is made in the ticker: an error there would have stopped the work of every workspace."""
    (snapshot / "MANIFEST.json").write_bytes(data)

    class Workspace:
        paths = WorkspacePaths(tmp_path)

    class Apply:
        pk, snapshot_attempt, workspace = "a", 1, Workspace()

    account = account_of(Apply(), reason="gone")  # type: ignore[arg-type]
    assert account["files"] == []
    assert "MANIFEST.json" in account["unreadable"]


@pytest.mark.parametrize(
    "data",
    all_damages(
        MARKER,
        lambda value: value.update(snapshot=["history"]),
        lambda value: value.update(snapshot="../../x"),
        lambda value: value.update(direction="sideways"),
    ),
)
def test_a_marker(tmp_path: Path, snapshot: Path, data: bytes) -> None:
    evolution = WorkspacePaths(tmp_path).evolution
    evolution.marker_file.write_bytes(data)
    with pytest.raises(MarkerUnreadable, match="publishing can't be read"):
        publish_lock.read_marker(evolution)


@pytest.mark.parametrize(
    "data",
    all_damages(
        PLAN,
        lambda value: value["files"][0].update(action="erase"),
        lambda value: value["files"][0].update(new=5),
        lambda value: value["files"][0].update(rel="docs/x.md"),
        lambda value: value["files"][0].pop("mode"),
        lambda value: value.update(createdDirs=["docs"]),
    ),
)
def test_a_plan_is_never_guessed(snapshot: Path, data: bytes) -> None:
    (snapshot / "rollback-2/ROLLBACK.json").write_bytes(data)
    with pytest.raises(PlanUnreadable, match=r"rollback-2/ROLLBACK\.json can't be read"):
        newest_plan(snapshot)


def test_a_plan_that_is_whole_is_read(snapshot: Path) -> None:
    (snapshot / "rollback-2/ROLLBACK.json").write_text(json.dumps(PLAN))
    found = newest_plan(snapshot)
    assert found is not None
    assert [(item.rel, item.action, item.new) for item in found[1].files] == [("INDEX.md", "restore", "aa")]


@pytest.mark.parametrize("data", [b"", b"\0", b"5", DEEP, b'{"kind": "apply", "process": 5}'])
def test_a_lock_file_names_nobody(tmp_path: Path, snapshot: Path, data: bytes) -> None:
    evolution = WorkspacePaths(tmp_path).evolution
    evolution.lock_file.write_bytes(data)
    assert publish_lock.holder(evolution) is None
