"""Paths from outside: clean and inside, or refused by name."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.paths import UnsafePathError, checked_relative, checked_workspace, expanded, halo_home, inside


def test_the_home_is_the_environments_or_the_persons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HALO_HOME", str(tmp_path))
    assert halo_home().settings_file == tmp_path / "secrets" / "settings.yaml"
    monkeypatch.setenv("HALO_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert halo_home().root == tmp_path / ".halo"


@pytest.mark.parametrize("text", ["", ".", "/etc", "..", "a/../b", "a/..", "a\0b"])
def test_what_is_no_clean_relative_path_is_refused(text: str) -> None:
    with pytest.raises(UnsafePathError):
        checked_relative(text)


@given(st.text(alphabet="ab./\0~", max_size=12))
def test_a_clean_path_stays_below_its_folder(text: str) -> None:
    try:
        clean = checked_relative(text)
    except UnsafePathError:
        return
    assert not PurePosixPath(clean).is_absolute()
    assert ".." not in PurePosixPath(clean).parts
    assert checked_relative(clean) == clean


def test_links_are_followed_while_they_stay_inside(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "in").symlink_to("deep")
    (folder / "out").symlink_to(tmp_path)
    (folder / "loop").symlink_to("loop")
    assert inside(folder, "in/file") == folder / "deep" / "file"
    for text in ("out", "out/x", "loop/x"):
        with pytest.raises(UnsafePathError):
            inside(folder, text)


def test_a_name_that_is_too_long_is_refused_or_harmless(tmp_path: Path) -> None:
    try:
        assert inside(tmp_path, "x" * 5000).is_relative_to(tmp_path)
    except UnsafePathError as error:
        assert len(str(error)) < 6000


def test_a_folder_whose_name_begins_the_same_is_outside(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "ab")
    with pytest.raises(UnsafePathError):
        inside(tmp_path / "a", "link")


def test_the_root_and_what_is_no_folder_are_no_workspaces(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (Path("/"), Path("/usr/.."), tmp_path / "file", tmp_path / "none"):
        with pytest.raises(UnsafePathError):
            checked_workspace(path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert checked_workspace(tmp_path / "link") == tmp_path.resolve()


def test_a_home_of_nobody_stays_as_it_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert expanded("~/x") == Path("/home/ann/x")
    assert expanded("~nosuchuser/x") == Path("~nosuchuser/x")
    assert expanded("a/~b") == Path("a/~b")
