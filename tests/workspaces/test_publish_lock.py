"""The workspace's lock between real processes, and what a reader sees while a marker stands."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.paths import EvolutionPaths, UnsafePathError, WorkspacePaths
from core.processes import ProcessIdentity
from workspaces import publish_lock
from workspaces.publish_lock import LockHeld, LockOwner, Marker, SurfaceFiles


@pytest.fixture
def paths(tmp_path: Path) -> EvolutionPaths:
    evolution = WorkspacePaths(tmp_path).evolution
    evolution.root.mkdir(parents=True)
    return evolution


@pytest.fixture
def in_child(paths: EvolutionPaths) -> Iterator[Callable[[Callable[[Callable[[], None]], None]], int]]:
    """Run a function in a forked child that announces when it holds what it should, then waits."""
    pids: list[int] = []

    def start(body: Callable[[Callable[[], None]], None]) -> int:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                body(lambda: (os.write(writer, b"x"), signal.pause())[1])
            finally:
                os._exit(0)
        pids.append(pid)
        os.close(writer)
        assert os.read(reader, 1) == b"x"
        os.close(reader)
        return pid

    yield start
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def owner(attempt: int = 1) -> LockOwner:
    return LockOwner("apply", "a" * 26, attempt, ProcessIdentity.current())


def never(_owner: LockOwner) -> bool:
    return False


def in_flight(_apply_id: str) -> bool:
    return False


def hold(paths: EvolutionPaths, ready: Callable[[], None]) -> None:
    with publish_lock.exclusive(paths, owner=owner(), may_end_holder=never):
        ready()


def load(paths: EvolutionPaths, ready: Callable[[], None]) -> None:
    with publish_lock.shared(paths):
        ready()


def test_the_holder_is_named_while_it_holds_and_forgotten_after(paths: EvolutionPaths) -> None:
    with publish_lock.exclusive(paths, owner=owner(3), may_end_holder=never):
        assert publish_lock.holder(paths) == owner(3)
    assert publish_lock.holder(paths) is None


def test_a_vanished_workspace_is_not_made_again(paths: EvolutionPaths) -> None:
    paths.root.rmdir()
    paths.root.parent.rmdir()
    with (
        pytest.raises(FileNotFoundError, match="is gone"),
        publish_lock.exclusive(paths, owner=owner(), may_end_holder=never),
    ):
        pytest.fail("there is nothing to hold")
    assert not paths.root.parent.exists()


def test_a_reader_needs_no_right_to_write(paths: EvolutionPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    paths.lock_file.touch()
    real = os.open

    def read_only(path: Path, flags: int, *rest: int) -> int:
        if flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system", str(path))
        return real(path, flags, *rest)

    monkeypatch.setattr("workspaces.lock_file.os.open", read_only)
    with publish_lock.shared(paths):
        monkeypatch.undo()
        with (
            pytest.raises(LockHeld),
            publish_lock.exclusive(paths, owner=owner(), may_end_holder=never, wait_sec=0.1),
        ):
            pytest.fail("the reader holds it")


def test_a_live_holder_with_its_claim_is_waited_for_then_named(paths: EvolutionPaths, in_child) -> None:
    pid = in_child(lambda ready: hold(paths, ready))
    with (
        pytest.raises(LockHeld) as caught,
        publish_lock.exclusive(paths, owner=owner(2), may_end_holder=never, wait_sec=0.1),
    ):
        pytest.fail("the lock was given twice")
    assert caught.value.reason == f"lock_held:{pid}"
    assert ProcessIdentity.of(pid) is not None
    named = publish_lock.holder(paths)
    assert named is not None and named.process.pid == pid


@pytest.mark.parametrize("side", ["exclusive", "shared"])
def test_a_stopped_holder_without_its_claim_is_ended(paths: EvolutionPaths, in_child, side: str) -> None:
    pid = in_child(lambda ready: hold(paths, ready))
    os.kill(pid, signal.SIGSTOP)
    asked: list[LockOwner] = []

    def gone(held_by: LockOwner) -> bool:
        asked.append(held_by)
        return True

    with (
        publish_lock.exclusive(paths, owner=owner(2), may_end_holder=gone, wait_sec=0.1)
        if side == "exclusive"
        else publish_lock.shared(paths, may_end_holder=gone, wait_sec=0.1)
    ):
        assert ProcessIdentity.of(pid) is None
        assert side == "shared" or publish_lock.holder(paths) == owner(2)
    assert [(held.process.pid, held.attempt) for held in asked] == [(pid, 1)]


def test_a_reader_leaves_a_stopped_holder_that_has_its_claim_alone(paths: EvolutionPaths, in_child) -> None:
    pid = in_child(lambda ready: hold(paths, ready))
    os.kill(pid, signal.SIGSTOP)
    with (
        pytest.raises(LockHeld) as caught,
        publish_lock.shared(paths, may_end_holder=never, wait_sec=0.1),
    ):
        pytest.fail("a loader got in beside a publisher")
    assert caught.value.pid == pid and ProcessIdentity.of(pid) is not None


def test_a_loader_is_never_ended_but_named(paths: EvolutionPaths, in_child) -> None:
    pid = in_child(lambda ready: load(paths, ready))
    with (
        pytest.raises(LockHeld) as caught,
        publish_lock.exclusive(paths, owner=owner(), may_end_holder=lambda _: True, wait_sec=0.1),
    ):
        pytest.fail("a publisher got in beside a loader")
    assert caught.value.reason == f"lock_held:{pid}"
    assert ProcessIdentity.of(pid) is not None


def test_the_name_a_dead_holder_left_is_not_taken_for_a_live_one(paths: EvolutionPaths, in_child) -> None:
    dead = in_child(lambda ready: hold(paths, ready))
    os.kill(dead, signal.SIGKILL)
    loader = in_child(lambda ready: load(paths, ready))
    with (
        pytest.raises(LockHeld) as caught,
        publish_lock.exclusive(paths, owner=owner(), may_end_holder=lambda _: True, wait_sec=0.1),
    ):
        pytest.fail("a publisher got in beside a loader")
    assert caught.value.pid == loader


def test_loaders_share_and_wait_for_a_publisher(paths: EvolutionPaths, in_child) -> None:
    with publish_lock.shared(paths), publish_lock.shared(paths, wait_sec=0.1):
        pass
    pid = in_child(lambda ready: hold(paths, ready))
    with pytest.raises(LockHeld) as caught, publish_lock.shared(paths, wait_sec=0.1):
        pytest.fail("a loader got in beside a publisher")
    assert caught.value.pid == pid


def test_a_lock_file_of_another_host_refuses_at_once_until_a_person_disowns_it(paths: EvolutionPaths) -> None:
    elsewhere = LockOwner("apply", "b" * 26, 1, ProcessIdentity("elsewhere", "boot", 4711, 1))
    paths.lock_file.write_text(json.dumps(elsewhere.to_json()))
    with (
        pytest.raises(LockHeld) as caught,
        publish_lock.exclusive(paths, owner=owner(), may_end_holder=lambda _: True),
    ):
        pytest.fail("took a lock of another host")
    assert (caught.value.reason, caught.value.host) == ("lock_held:4711", "elsewhere")
    assert publish_lock.holder(paths) == elsewhere
    publish_lock.disown(paths)
    with publish_lock.exclusive(paths, owner=owner(), may_end_holder=never):
        assert publish_lock.holder(paths) == owner()


def test_a_lock_file_deleted_under_a_holder_does_not_let_two_in_by_the_old_inode(
    paths: EvolutionPaths, in_child
) -> None:
    in_child(lambda ready: load(paths, ready))
    paths.lock_file.unlink()
    with (
        publish_lock.exclusive(paths, owner=owner(), may_end_holder=never, wait_sec=0.1),
        pytest.raises(LockHeld),
        publish_lock.shared(paths, wait_sec=0.1),
    ):
        pytest.fail("a loader got in beside a publisher")


def test_a_workspace_without_runs_is_read_without_a_trace(tmp_path: Path) -> None:
    halo = WorkspacePaths(tmp_path).halo
    halo.mkdir()
    (halo / "INSTRUCTIONS.md").write_text("be brief")
    with publish_lock.shared(WorkspacePaths(tmp_path).evolution):
        files = publish_lock.surface_files(halo, is_final=in_flight)
        assert files.read("INSTRUCTIONS.md") == b"be brief"
    assert sorted(path.name for path in halo.iterdir()) == ["INSTRUCTIONS.md"]


def interrupted(paths: EvolutionPaths) -> Path:
    """A surface in which a publisher died after its swaps: two files overwritten, a folder created."""
    halo = paths.root.parent
    snapshot = paths.snapshot("x", 1)
    for name, text in (("INSTRUCTIONS.md", "new"), ("agents/a/AGENT.md", "new"), ("USER.md", "kept")):
        (halo / name).parent.mkdir(parents=True, exist_ok=True)
        (halo / name).write_text(text)
    (halo / "skills/fresh").mkdir(parents=True)
    (halo / "skills/fresh/SKILL.md").write_text("new")
    (halo / "INDEX.md").write_text("new")
    (snapshot / "before").mkdir(parents=True)
    (snapshot / "before/INSTRUCTIONS.md").write_text("old")
    manifest = {
        "files": [
            {"rel": "INSTRUCTIONS.md", "kind": "overwrite"},
            {"rel": "INDEX.md", "kind": "new"},
            {"rel": "skills/fresh/SKILL.md", "kind": "new"},
        ],
        "createdDirs": ["skills/fresh", "skills"],
    }
    (snapshot / "MANIFEST.json").write_text(json.dumps(manifest))
    publish_lock.set_marker(paths, Marker("x", "history/apply-x/1"))
    return halo


def test_a_marker_without_a_holder_is_read_as_the_surface_before(paths: EvolutionPaths) -> None:
    files = publish_lock.surface_files(interrupted(paths), is_final=in_flight)
    assert files.read("INSTRUCTIONS.md") == b"old"
    assert files.read("USER.md") == b"kept"
    assert files.read("INDEX.md") is None and not files.exists("INDEX.md")
    assert not files.is_dir("skills/fresh") and files.listdir("skills") == []
    assert files.listdir() == ["INSTRUCTIONS.md", "USER.md", "agents", "evo"]


def test_a_file_gone_from_the_live_surface_is_listed_while_the_marker_stands(paths: EvolutionPaths) -> None:
    halo = interrupted(paths)
    (halo / "INSTRUCTIONS.md").unlink()
    files = publish_lock.surface_files(halo, is_final=in_flight)
    assert files.exists("INSTRUCTIONS.md") and "INSTRUCTIONS.md" in files.listdir()


def test_the_marker_of_a_final_apply_is_ignored_and_removed(paths: EvolutionPaths) -> None:
    files = publish_lock.surface_files(interrupted(paths), is_final=lambda apply_id: apply_id == "x")
    assert files.read("INSTRUCTIONS.md") == b"new"
    assert publish_lock.read_marker(paths) is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"applyId": "x", "snapshot": "../..", "direction": "publish"}']
)
def test_a_marker_nobody_wrote_is_named_not_guessed(paths: EvolutionPaths, text: str) -> None:
    halo = interrupted(paths)
    paths.marker_file.write_text(text)
    with pytest.raises(publish_lock.MarkerUnreadable, match="publishing"):
        publish_lock.surface_files(halo, is_final=in_flight)


def test_a_marker_without_its_manifest_is_named_not_guessed(paths: EvolutionPaths) -> None:
    halo = interrupted(paths)
    (paths.snapshot("x", 1) / "MANIFEST.json").unlink()
    with pytest.raises(publish_lock.MarkerUnreadable, match=r"MANIFEST\.json"):
        publish_lock.surface_files(halo, is_final=in_flight)


def test_a_link_that_leads_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    halo = tmp_path / "workspace/.halo"
    halo.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (halo / "INSTRUCTIONS.md").symlink_to(tmp_path / "secret")
    (halo / "REAL.md").write_text("text")
    (halo / "INDEX.md").symlink_to("REAL.md")
    files = SurfaceFiles(halo)
    assert files.read("INDEX.md") == b"text"
    for unsafe in ("INSTRUCTIONS.md", "../../secret", "/etc/passwd", "a\0b"):
        with pytest.raises(UnsafePathError):
            files.read(unsafe)
