"""Reading where others write: what was looked up is what is read, or nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.bounded_read import UnreadableFileError, read_bounded


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/AGENTS.md").write_text("s3cret")
    (tmp_path / "ws/sub").mkdir(parents=True)
    (tmp_path / "ws/sub/AGENTS.md").write_text("notes")
    return tmp_path / "ws"


def test_a_plain_file_is_read_and_an_absent_one_is_none(root: Path) -> None:
    assert read_bounded(root / "sub/AGENTS.md", limit=10, real_root=str(root)) == b"notes"
    assert read_bounded(root / "sub/none.md", limit=10, real_root=str(root)) is None
    assert read_bounded(root / "none/none.md", limit=10, real_root=str(root)) is None


@pytest.mark.parametrize("swapped", ["sub", "sub/AGENTS.md"])
def test_a_name_swapped_for_a_symlink_is_not_followed(root: Path, swapped: str) -> None:
    """The link appears after the path was looked up, as a sandboxed command beside this can make it."""
    target = root.parent / "secret" / ("AGENTS.md" if swapped.endswith(".md") else "")
    (root / swapped).rename(root / "aside")
    (root / swapped).symlink_to(target)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(UnreadableFileError):
        read_bounded(root / "sub/AGENTS.md", limit=10, real_root=str(root))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
