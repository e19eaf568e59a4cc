"""Folders become workspaces, are found, followed and refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.paths import HaloHome
from core.processes import ProcessIdentity, host_name
from workspaces.errors import WorkspaceRefused
from workspaces.lock_file import LockHeld, LockOwner, exclusive, holder
from workspaces.models import Workspace
from workspaces.move import move
from workspaces.register import register
from workspaces.selectors import find

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def add(path: Path, home: HaloHome) -> Workspace:
    return register(path, home=home, now=NOW)[0]


def test_adding_makes_the_surface_and_keeps_what_is_there(tmp_path: Path, home: HaloHome) -> None:
    folder = tmp_path / "project"
    (folder / ".halo").mkdir(parents=True)
    (folder / ".halo" / ".gitignore").write_text("mine\n")
    workspace, created = register(folder, home=home, now=NOW)
    assert created
    assert workspace.path == str(folder.resolve())
    assert (folder / ".halo" / ".gitignore").read_text() == "mine\n"
    (tmp_path / "other").mkdir()
    other = add(tmp_path / "other", home)
    assert "evo/" in (Path(other.path) / ".halo" / ".gitignore").read_text()


def test_a_second_name_of_the_same_folder_is_the_same_workspace(tmp_path: Path, home: HaloHome) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    first = add(tmp_path / "real", home)
    again, created = register(tmp_path / "link", home=home, now=NOW)
    assert (again.pk, created) == (first.pk, False)
    assert Workspace.objects.count() == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/", "not_a_folder"),
        ("nothing", "not_a_folder"),
        ("file", "not_a_folder"),
        ("nul\0", "not_a_folder"),
        ("loop", "not_a_folder"),
        (".", "overlaps_home"),
        ("home", "overlaps_home"),
        ("home/global", "overlaps_home"),
        ("outer/inner", "nested"),
        ("linked", "surface_not_a_folder"),
        ("notes", "surface_not_a_folder"),
        ("bad\udcff", "name_unusable"),
    ],
)
def test_what_can_not_be_a_workspace_is_refused_and_nothing_is_made(
    tmp_path: Path, home: HaloHome, path: str, code: str
) -> None:
    for name in ("outer/inner", "linked", "notes", "bad\udcff"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "linked" / ".halo").symlink_to(home.global_folder)
    (tmp_path / "notes" / ".halo").write_text("mine")
    add(tmp_path / "outer", home)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(WorkspaceRefused) as caught:
        register(tmp_path / path, home=home, now=NOW)
    assert caught.value.code == code
    assert Workspace.objects.count() == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_renamed_folder_is_followed(tmp_path: Path, home: HaloHome) -> None:
    (tmp_path / "old").mkdir()
    workspace = add(tmp_path / "old", home)
    (tmp_path / "old").rename(tmp_path / "new")
    moved = move(find(str(tmp_path / "old")), home=home, new_path=tmp_path / "new")
    assert (moved.pk, moved.path) == (workspace.pk, str(tmp_path / "new"))
    assert find(str(tmp_path / "new" / "deep" / "file")).pk == workspace.pk


def test_moving_refuses_a_copy_a_bare_folder_and_another_workspace(tmp_path: Path, home: HaloHome) -> None:
    for name in ("a", "b", "copy/.halo", "bare"):
        (tmp_path / name).mkdir(parents=True)
    workspace = add(tmp_path / "a", home)
    add(tmp_path / "b", home)
    for target, code in (
        ("copy", "still_there"),
        ("bare", "no_surface"),
        ("b", "still_there"),
        ("a", "nothing_to_do"),
    ):
        with pytest.raises(WorkspaceRefused) as caught:
            move(workspace, home=home, new_path=tmp_path / target)
        assert caught.value.code == code
    (tmp_path / "a").rename(tmp_path / "gone")
    with pytest.raises(WorkspaceRefused, match="in one another"):
        move(workspace, home=home, new_path=tmp_path / "b")
    assert sorted(Workspace.objects.values_list("path", flat=True)) == [
        str(tmp_path / "a"),
        str(tmp_path / "b"),
    ]


def test_two_people_moving_one_workspace_do_not_undo_each_other(tmp_path: Path, home: HaloHome) -> None:
    (tmp_path / "a").mkdir()
    seen = add(tmp_path / "a", home)
    move(Workspace.objects.get(pk=seen.pk), home=home, host="first")
    with pytest.raises(WorkspaceRefused) as caught:
        move(seen, home=home, host="second")
    assert caught.value.code == "changed"
    assert Workspace.objects.get(pk=seen.pk).host == "first"


def test_finding_by_number_path_and_from_inside(tmp_path: Path, home: HaloHome) -> None:
    (tmp_path / "a").mkdir()
    workspace = add(tmp_path / "a", home)
    for text in (str(workspace.pk), str(tmp_path / "a"), str(tmp_path / "a" / "x" / "y")):
        assert find(text).pk == workspace.pk
    for text in (str(tmp_path), "999999", "9" * 400, "nul\0"):
        with pytest.raises(WorkspaceRefused) as caught:
            find(text)
        assert caught.value.code == "unknown_workspace"
        assert ("halo workspace list" in str(caught.value)) == text.isdigit()


def test_a_folder_that_is_not_there_is_not_one_to_add(tmp_path: Path, home: HaloHome) -> None:
    (tmp_path / "a").mkdir()
    for text, said, unsaid in (
        (tmp_path / "handbook", "There is no folder", "workspace add"),
        (tmp_path / "a", f"halo workspace add {tmp_path / 'a'}", "workspace list"),
    ):
        with pytest.raises(WorkspaceRefused) as caught:
            find(str(text))
        assert said in str(caught.value)
        assert unsaid not in str(caught.value)


@pytest.mark.parametrize("row_host", ["gone", host_name()], ids=["row of that host", "row already here"])
def test_moving_a_workspace_here_forgets_the_lock_of_the_host_it_comes_from(
    tmp_path: Path, home: HaloHome, row_host: str
) -> None:
    (tmp_path / "a").mkdir()
    workspace = add(tmp_path / "a", home)
    Workspace.objects.filter(pk=workspace.pk).update(host=row_host)
    workspace.refresh_from_db()
    paths = workspace.paths.evolution
    theirs = LockOwner("apply", "x", 1, ProcessIdentity("gone", "boot", 7, 1))
    ours = LockOwner("apply", "y", 1, ProcessIdentity.current())
    paths.root.mkdir(parents=True, exist_ok=True)
    paths.lock_file.write_text(json.dumps(theirs.to_json()))
    with (
        pytest.raises(LockHeld, match="move the workspace here"),
        exclusive(paths, owner=ours, may_end_holder=lambda _: False, wait_sec=0.1),
    ):
        pytest.fail("another host's lock was taken")

    if row_host == "gone":
        move(workspace, home=home, host="a third")
        assert holder(paths) == theirs
        workspace.refresh_from_db()
    move(workspace, home=home, host=host_name())

    with exclusive(paths, owner=ours, may_end_holder=lambda _: False, wait_sec=0.1):
        assert holder(paths) == ours
