"""A folder in a zip and back: what is kept, what isn't, and what a damaged or hostile zip does."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from evolution import zip_reading, zips
from evolution.zip_reading import read_member, read_out
from evolution.zips import ZipDamaged, check, pack, unpack
from tests.evolution.phase_world import write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "one"
    write(folder / "attempts/1/patch.md", "A patch. Zürich 🚲\n")
    write(folder / "attempts/1/.skip.md", b"\x00\xff")
    (folder / "attempts/2/sessions").mkdir(parents=True)
    os.utime(folder / "attempts/1/patch.md", ns=(1, 1_700_000_000_123_456_789))
    os.utime(folder / "attempts/1/.skip.md", ns=(1, 5))
    (folder / "attempts/1/patch.md").chmod(0o640)
    (tmp_path / "archive").mkdir()
    return folder


def target(folder: Path) -> Path:
    return folder.parents[1] / "archive" / "run-one.zip"


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def test_what_was_packed_comes_back_with_its_times_and_modes(folder: Path) -> None:
    before = contents(folder)
    pack(folder, target(folder))
    check(target(folder))
    back = folder.with_name("back")

    unpack(target(folder), back)

    assert contents(back) == before and before["attempts/2/sessions"] is None
    status = (back / "attempts/1/patch.md").stat()
    assert (status.st_mtime_ns, stat.S_IMODE(status.st_mode)) == (1_700_000_000_123_456_789, 0o640)
    assert (back / "attempts/1/.skip.md").stat().st_mtime_ns == 5
    assert stat.S_IMODE(target(folder).stat().st_mode) == 0o600


def test_links_to_files_become_content_and_links_to_folders_nowhere_and_oddities_are_left_out(
    folder: Path, tmp_path: Path
) -> None:
    write(tmp_path / "elsewhere/secret/file", "deep")
    (folder / "file-link").symlink_to(folder / "attempts/1/patch.md")
    (folder / "folder-link").symlink_to(tmp_path / "elsewhere")
    (folder / "broken").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "device").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(folder)
        listening.bind("socket")

    pack(folder, target(folder))

    with zipfile.ZipFile(target(folder)) as archive:
        names = {name for name in archive.namelist() if not name.startswith("attempts/")}
        assert names == {"file-link"}
        assert archive.read("file-link").decode() == "A patch. Zürich 🚲\n"
    unpack(target(folder), folder.with_name("back"))
    assert not (folder.with_name("back") / "file-link").is_symlink()


def test_a_name_that_is_no_text_is_written_out(folder: Path) -> None:
    with open(os.fsencode(folder) + b"/bad-\xff", "wb") as stream:  # noqa: PTH123 - a name Path would hide
        stream.write(b"kept")
    pack(folder, target(folder))
    with zipfile.ZipFile(target(folder)) as archive:
        assert archive.read("bad-\\xff") == b"kept"


def test_a_zip_that_does_not_read_back_is_no_zip(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = zips._write

    def damaging(folder: Path, temporary: Path) -> dict[str, str]:
        packed = real(folder, temporary)
        return {**packed, "attempts/1/patch.md": "0" * 64}

    monkeypatch.setattr(zips, "_write", damaging)
    before = contents(folder)
    with pytest.raises(ZipDamaged):
        pack(folder, target(folder))
    assert list(target(folder).parent.iterdir()) == [] and contents(folder) == before


def test_a_full_disk_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(target(folder), b"the old one")

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zips.atomic, "fsync_file", full)
    with pytest.raises(OSError, match="No space"):
        pack(folder, target(folder))
    assert [path.name for path in target(folder).parent.iterdir()] == ["run-one.zip"]
    assert target(folder).read_bytes() == b"the old one"


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "a\0b/../../../out"])
def test_a_zip_whose_names_lead_out_is_refused_whole(tmp_path: Path, name: str) -> None:
    archive, folder = tmp_path / "evil.zip", tmp_path / "runs" / "one"
    write(folder / "old", "old")
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("fine", b"fine")
        made.writestr(zipfile.ZipInfo(name.replace("\0", "_") if "\0" in name else name), b"bad")
    with pytest.raises(ZipDamaged):
        unpack(archive, folder)
    assert contents(folder) == {"old": b"old"} and [path.name for path in folder.parent.iterdir()] == ["one"]
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip_is_written_as_a_file(tmp_path: Path) -> None:
    archive = tmp_path / "evil.zip"
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr(info, "/etc/passwd")
    unpack(archive, tmp_path / "out")
    assert not (tmp_path / "out/link").is_symlink()


def test_a_zip_that_holds_more_than_there_is_room_for_is_refused_before_it_is_unpacked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "attempts/1/zeros", bytes(64 << 20))
    pack(folder, target(folder))
    assert target(folder).stat().st_size < 1 << 20
    before = contents(folder.parent)
    usage = shutil.disk_usage(folder)._replace(free=63 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(OSError, match="its files take 64 MB and 63 MB are free"):
        unpack(target(folder), folder)
    assert contents(folder.parent) == before
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=65 << 20))
    unpack(target(folder), folder)
    assert (folder / "attempts/1/zeros").stat().st_size == 64 << 20


def test_a_zip_that_says_less_than_it_holds_is_damaged(folder: Path) -> None:
    write(folder / "attempts/1/zeros", bytes(1 << 20))
    pack(folder, target(folder))
    data = target(folder).read_bytes()
    size = (1 << 20).to_bytes(4, "little")
    assert data.count(size) >= 1
    target(folder).write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    before = contents(folder.parent)
    with pytest.raises(ZipDamaged):
        unpack(target(folder), folder)
    assert contents(folder.parent) == before


def test_a_damaged_zip_changes_nothing(folder: Path) -> None:
    pack(folder, target(folder))
    data = bytearray(target(folder).read_bytes())
    for cut in (data[:-30], data[:20], b"", b"no zip at all"):
        target(folder).write_bytes(cut)
        before = contents(folder)
        with pytest.raises(ZipDamaged):
            unpack(target(folder), folder)
        with pytest.raises(ZipDamaged):
            check(target(folder))
        assert contents(folder) == before and [path.name for path in folder.parent.iterdir()] == ["one"]


def flip(archive: Path, name: str) -> None:
    """Damage the packed bytes of one file, as a bad disk does."""
    with zipfile.ZipFile(archive) as made:
        info = made.getinfo(name)
    data = bytearray(archive.read_bytes())
    begin = info.header_offset + 30 + len(info.filename.encode())
    data[begin : begin + info.compress_size] = b"\xff" * info.compress_size
    archive.write_bytes(data)


def test_a_zip_with_one_damaged_file_is_no_zip_to_be_unpacked(folder: Path) -> None:
    """Packed bytes that can't be unpacked are told by an error of their own kind."""
    pack(folder, target(folder))
    flip(target(folder), "attempts/1/patch.md")
    before = contents(folder)
    for use in (check, lambda archive: unpack(archive, folder)):
        with pytest.raises(ZipDamaged, match=r"patch\.md"):
            use(target(folder))
    assert contents(folder) == before
    assert read_member(target(folder), "attempts/1/patch.md", limit=7) is None
    assert read_member(target(folder), "attempts/1/.skip.md", limit=7) == b"\x00\xff"


class TestReadOut:
    """What a page reads of a zip."""

    def test_everything_comes_with_its_times(self, folder: Path, tmp_path: Path) -> None:
        pack(folder, target(folder))
        assert read_out(target(folder), tmp_path / "out", first="attempts/1/") == []
        assert contents(tmp_path / "out") == contents(folder)
        assert (tmp_path / "out/attempts/1/.skip.md").stat().st_mtime_ns == 5

    def test_what_is_damaged_is_named_and_the_rest_is_there(self, folder: Path, tmp_path: Path) -> None:
        pack(folder, target(folder))
        flip(target(folder), "attempts/1/patch.md")
        said = read_out(target(folder), tmp_path / "out", first="attempts/1/")
        assert said == ["attempts/1/patch.md is damaged"]
        assert not (tmp_path / "out/attempts/1/patch.md").exists()
        assert (tmp_path / "out/attempts/1/.skip.md").read_bytes() == b"\x00\xff"

    def test_what_is_too_large_is_named_and_the_attempt_that_is_looked_at_goes_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zip_reading, "MAX_BYTES", 100)
        monkeypatch.setattr(zip_reading, "MAX_FILE_BYTES", 60)
        archive, out = tmp_path / "large.zip", tmp_path / "out"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
            for name, size in {
                **{f"attempts/1/{number}": 50 for number in range(6)},
                **{"attempts/2/bomb": 100_000, "attempts/2/patch.md": 55, "meta.json": 5},
            }.items():
                made.writestr(name, b"0" * size)

        said = read_out(archive, out, first="attempts/2/")

        assert {rel for rel, data in contents(out).items() if data is not None} == {
            "attempts/2/patch.md",
            "meta.json",
        }
        assert said == [
            "attempts/2/bomb, attempts/1/0, attempts/1/1, attempts/1/2, attempts/1/3 and 2 more are too large "
            "to be shown here"
        ]

    @pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "fine"])
    def test_names_that_nobody_packed_are_refused_whole(self, tmp_path: Path, name: str) -> None:
        archive = tmp_path / "evil.zip"
        with zipfile.ZipFile(archive, "w") as made:
            made.writestr("fine", b"fine")
            with warnings.catch_warnings(action="ignore"):
                made.writestr(name, b"bad")
        with pytest.raises(ZipDamaged):
            read_out(archive, tmp_path / "in/found", first="")
        assert not (tmp_path / "in").exists() and not (tmp_path / "out").exists()

    def test_too_many_entries_and_a_list_that_fills_a_memory_are_not_read(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pack(folder, target(folder))
        for bound in ("MAX_ENTRIES", "_MAX_READ"):
            with monkeypatch.context() as patched, pytest.raises(ZipDamaged):
                patched.setattr(zip_reading, bound, 3)
                read_out(target(folder), tmp_path / "out", first="")
        assert not (tmp_path / "out").exists()

    def test_nobody_waits_for_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.zip")
        with pytest.raises(ZipDamaged, match="no file"):
            read_out(tmp_path / "pipe.zip", tmp_path / "out", first="")
        assert read_member(tmp_path / "pipe.zip", "a", limit=7) is None

    def test_a_link_is_a_file(self, tmp_path: Path) -> None:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        with zipfile.ZipFile(tmp_path / "evil.zip", "w") as made:
            made.writestr(info, "/etc/passwd")
        assert read_out(tmp_path / "evil.zip", tmp_path / "out", first="") == []
        assert not (tmp_path / "out/link").is_symlink()
        assert (tmp_path / "out/link").read_text() == "/etc/passwd"


def test_one_file_is_read_without_unpacking(folder: Path) -> None:
    pack(folder, target(folder))
    assert read_member(target(folder), "attempts/1/patch.md", limit=7) == b"A patch"
    assert read_member(target(folder), "attempts/1/none", limit=7) is None
    target(folder).write_bytes(b"no zip")
    assert read_member(target(folder), "attempts/1/patch.md", limit=7) is None
