"""A file is old or new, whatever happens while it is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from core import atomic
from core.bounded_read import UnreadableFileError, read_bounded


def test_a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for mode in (0o600, 0o644):
        atomic.write_text(path, f"{mode}é", mode=mode)
        assert path.read_text() == f"{mode}é"
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write", "fsync", "fchmod"])
def test_a_failure_at_any_step_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        atomic.write_text(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:3]))
    atomic.write_bytes(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_link_is_replaced_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    (tmp_path / "link").symlink_to("other")
    atomic.write_text(tmp_path / "link", "mine")
    assert (tmp_path / "other").read_text() == "other"
    assert not (tmp_path / "link").is_symlink()


def test_reading_stops_at_the_limit_and_at_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    assert read_bounded(tmp_path / "a", limit=5) == b"12345"
    assert read_bounded(tmp_path / "none", limit=5) is None
    assert read_bounded(tmp_path / "a" / "none", limit=5) is None
    for path, limit, reason in (
        (tmp_path / "a", 4, "larger"),
        (tmp_path / "pipe", 9, "regular"),
        (tmp_path, 9, "regular"),
        (Path("/dev/zero"), 9, "regular"),
        (Path("a\0b"), 9, "null"),
    ):
        with pytest.raises(UnreadableFileError, match=reason):
            read_bounded(path, limit=limit)
